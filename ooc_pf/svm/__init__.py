"""Support vector machines with squared hinge loss: rows are the constraints y_i (w x_i + b) >= 1 - xi_i."""
