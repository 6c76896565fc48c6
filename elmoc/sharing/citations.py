"""Citations: how to cite what a model rests on, as BibTeX entries."""

from elmoc.version import VERSION

ELMO_C = """\
@article{li-etal-2019-efficient,
  title = {Efficient Contextual Representation Learning With Continuous Outputs},
  author = {Li, Liunian Harold and Chen, Patrick H. and Hsieh, Cho-Jui and Chang, Kai-Wei},
  journal = {Transactions of the Association for Computational Linguistics},
  volume = {7},
  pages = {611--624},
  year = {2019},
  doi = {10.1162/tacl_a_00289},
}"""
ELMO = """\
@inproceedings{peters-etal-2018-deep,
  title = {Deep Contextualized Word Representations},
  author = {Peters, Matthew E. and Neumann, Mark and Iyyer, Mohit and Gardner, Matt and Clark, Christopher and
    Lee, Kenton and Zettlemoyer, Luke},
  booktitle = {Proceedings of the 2018 Conference of the North American Chapter of the Association for Computational
    Linguistics: Human Language Technologies, Volume 1 (Long Papers)},
  pages = {2227--2237},
  year = {2018},
  doi = {10.18653/v1/N18-1202},
}"""
THIS_PROJECT = f"""\
@software{{elmoc,
  title = {{ELMo-C: contextual word representations pretrained cheaply with continuous outputs}},
  version = {{{VERSION}}},
}}"""
"""The program that trained, or reads, a model."""
