{{ config(materialized='nondeterministic_mv', unique_key='review_id') }}

select
    review_id,
    drug,
    reviewed_on,
    useful_count,
    review,
    ai_analyze_sentiment(review) as sentiment,
    ai_classify(review, array('mood', 'pain', 'skin', 'sleep', 'bleeding', 'weight gain')) as topic,
    case when rand() < 0.8 then 'train' else 'test' end as split,
    uuid() as row_id
from {{ source('raw', 'drug_reviews') }}
where reviewed_on > current_date() - interval 30 days
