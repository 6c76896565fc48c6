"""How an update is executed: directions in threads of a CPU, or as one CUDA graph."""
