"""Problems given by functions: general rows and convex sets under any Bregman objective."""
