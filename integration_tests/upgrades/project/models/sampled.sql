-- the draws of the filter are kept in a state table
select id, word from golden.events where rand() < 0.5
