"""Cloud TPU machines through gcloud: request one, install azero on it, start an experiment, watch
it, delete the machine."""
