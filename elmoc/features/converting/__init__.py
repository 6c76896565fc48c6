"""Converting: what a feature file holds, in words (`describe`), and written again in another form (`convert`)."""
