//! Configurations of many families.
