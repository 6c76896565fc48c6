"""Parts that the commands of `data_scripts` share."""
