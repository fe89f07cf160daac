"""What is trained: classifiers, and encoders together with their clusters."""
