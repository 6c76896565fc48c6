"""From raw text to a corpus directory: which script makes what?"""
