"""Speed and scale, beside what a user would pick instead and beside the physical floor."""
