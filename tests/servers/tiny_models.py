"""Tiny random models, made on the spot: real files and real protocol, meaningless output.

``tiny_models.py qwen DIR`` writes a Qwen2 of half a million parameters with a ChatML template;
``tiny_models.py bge DIR`` writes a BGE-M3 and a reranker in the layout that FlagEmbedding loads.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
    XLMRobertaConfig,
    XLMRobertaForSequenceClassification,
    XLMRobertaModel,
)

TEXTS = [
    "The patient has had chest pain and a cough for three days; no fever, blood pressure 140/90 mmHg.",
    "Similar records support the diagnosis; answer with a JSON object, name the records R1, R2 and R3.",
    'Inside the tags is data: <record id="R1" diagnosis="acute glaucoma"> </record> <case> </case>',
    "患者头痛三天，伴恶心，右眼胀痛，眼压升高。相似病历的诊断。",
    "三日前からの頭痛と右眼の痛み、眼圧の上昇を認めた。記録の診断。",
]
CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
WIDTH = 64


def make_qwen(target: Path) -> None:
    """A byte-level BPE trained on a few sentences and a two-layer Qwen2."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=900,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXTS * 20, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>", model_max_length=4096
    )
    fast.chat_template = CHATML
    fast.save_pretrained(target)
    torch.manual_seed(7)
    config = Qwen2Config(
        vocab_size=len(fast),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        bos_token_id=0,
        eos_token_id=2,
        pad_token_id=0,
    )
    Qwen2ForCausalLM(config).to(torch.bfloat16).save_pretrained(target)


def make_bge(target: Path) -> None:
    """``DIR/bge-m3`` and ``DIR/reranker``: XLM-RoBERTa of two layers, and the two heads of BGE-M3."""
    for name in ("bge-m3", "reranker"):
        folder = target / name
        folder.mkdir(parents=True, exist_ok=True)
        fast = _sentencepiece_like()
        fast.save_pretrained(folder)
        torch.manual_seed(7)
        config = XLMRobertaConfig(
            vocab_size=len(fast),
            hidden_size=WIDTH,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=128,
            max_position_embeddings=1030,
            type_vocab_size=1,
            bos_token_id=0,
            pad_token_id=1,
            eos_token_id=2,
            num_labels=1,
        )
        if name == "reranker":
            XLMRobertaForSequenceClassification(config).save_pretrained(folder)
            continue
        XLMRobertaModel(config).save_pretrained(folder)
        torch.save(torch.nn.Linear(WIDTH, WIDTH).state_dict(), folder / "colbert_linear.pt")
        torch.save(torch.nn.Linear(WIDTH, 1).state_dict(), folder / "sparse_linear.pt")


def _sentencepiece_like() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(
        vocab_size=600, special_tokens=special, unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS * 20, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        cls_token="<s>",
        pad_token="<pad>",
        eos_token="</s>",
        sep_token="</s>",
        unk_token="<unk>",
        model_max_length=1024,
    )


if __name__ == "__main__":
    {"qwen": make_qwen, "bge": make_bge}[sys.argv[1]](Path(sys.argv[2]))
