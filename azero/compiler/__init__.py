"""What the TPU compiler says of a program, on a machine without a TPU: topologies, the optimised program, its cost and its memory."""
