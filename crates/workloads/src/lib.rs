//! What is run: data and answers.
