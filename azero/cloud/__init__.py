"""Cloud TPU machines through gcloud: request one, install azero on it, start an experiment, watch
over it, give it back."""
