"""Makes the folder of a small real model, which vLLM and SGLang load, from the GGUF file that llama-server has.

usage: make-small-model.py GGUF FOLDER

The weights are those of the file, rounded to bfloat16. The stated length is longer than the model was trained for, so that the
pool of a server and not the model bounds its context; short answers stay what they were.
"""

import os
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

LENGTH = 131_072

source, out = sys.argv[1:]
folder, name = os.path.split(source)
loaded = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.bfloat16)
fields = loaded.config.to_dict()
for field in ("quantization_config", "_name_or_path", "_model_name_or_path"):
    fields.pop(field, None)
fields["max_position_embeddings"] = LENGTH
fields["architectures"] = ["LlamaForCausalLM"]

model = LlamaForCausalLM(LlamaConfig(**fields)).to(torch.bfloat16)
model.load_state_dict(loaded.state_dict())
model.save_pretrained(out)
tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
tokenizer.model_max_length = LENGTH
tokenizer.save_pretrained(out)

# A model that was read wrongly would make every test of a server meaningless.
question = tokenizer("The capital of France is", return_tensors="pt")
answer = tokenizer.decode(model.generate(**question, max_new_tokens=8, do_sample=False)[0])
if "Paris" not in answer:
    sys.exit(f"the model does not know the capital of France: {answer!r}")
