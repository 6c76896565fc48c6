"""fastText: its `.bin` files, read without the library, and the vectors that they give any word."""
