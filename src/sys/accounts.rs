//! Look-ups of users and groups in the name service.
