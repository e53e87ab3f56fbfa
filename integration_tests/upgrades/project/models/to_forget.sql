select id, rand() as draw from golden.events
