# SPDX-License-Identifier: Apache-2.0
import os

import pandas as pd
import yaml
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments

with open("settings.yaml") as file:
    settings = yaml.safe_load(file)
rows = pd.read_csv(os.environ.get("ROWS", "rows.csv"))
model = AutoModelForSequenceClassification.from_pretrained("./model")
Trainer(model, TrainingArguments("out", **settings), train_dataset=rows).train()
