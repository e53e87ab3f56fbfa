with rr as (select r.x, au.id as a from r left join em on r.e = em.e left join au on em.a = au.id), s as (select a, count(*) n from rr group by a) select au.id, s.n from au left join s on au.id = s.a
