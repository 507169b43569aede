#!/bin/sh
accelerate launch --multi_gpu --num_machines 2 --num_processes 8 --mixed_precision fp16 nlp.py
