"""Reading clinical text: language, words, sections, views."""

from .detect import Language, detect_language
from .sections import Section, read_sections
from .tokenizers import ClinicalTokenizer, Tokenizer
from .views import ViewSplit, split_views

__all__ = [
    "ClinicalTokenizer",
    "Language",
    "Section",
    "Tokenizer",
    "ViewSplit",
    "detect_language",
    "read_sections",
    "split_views",
]
