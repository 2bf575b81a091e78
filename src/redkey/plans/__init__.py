"""Plans (plan.json): the model, the structure that reducers use, validation and warnings."""
