"""Speed: how fast training runs here, and how fast it could (`python -m pretrain.speed`)."""
