select id, ai_gen(word) as answer from golden.events
