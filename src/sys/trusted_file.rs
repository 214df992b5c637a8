//! Policy files, read through descriptors whose whole path has been judged.
