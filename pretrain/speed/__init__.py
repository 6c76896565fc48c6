"""How fast does training run here, and how fast could it? (`python -m pretrain.speed`)"""
