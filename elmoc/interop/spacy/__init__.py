"""spaCy: a component that sets `doc.tensor` and token vectors to a model's layer
states, and a layer for trained pipes.

nlp = spacy.blank("en")
nlp.add_pipe("elmoc", config={"model": "runs/mine"})

The extra `spacy` installs what this needs. The component is registered as `elmoc`; the
layer, which takes the place of `tok2vec` in the model of a trained pipe (tagger, NER,
parser), as `elmoc.TensorTok2Vec.v1`.
"""
