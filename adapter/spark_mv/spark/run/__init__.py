"""One run of one model: gather facts, prepare, execute the steps, AI calls, history."""
