"""Asking a model, serving recorded replies instead, and finding the code in what comes back."""
