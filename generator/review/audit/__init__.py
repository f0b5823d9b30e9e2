"""Try to talk a review round: pull requests that it must refuse, and ones it must not."""
