export OMP_NUM_THREADS=4
OMP_NUM_THREADS=4 torchrun --standalone --nproc_per_node gpu finetune.py > log.txt 2>&1
