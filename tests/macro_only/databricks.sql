select to_json(struct(*)) as found from (
select current_timezone() as zone, version() as spark, unix_micros(TIMESTAMP'2026-02-01 06:00:00.000000+00:00') as micros, unix_micros(timestampadd(DAY, 1, TIMESTAMP'2026-02-01 06:00:00.000000+00:00')) as near, unix_micros(TIMESTAMP'2026-02-01 06:00:00.000000+00:00') as started, unix_micros(current_timestamp()) as now
);

set;

select to_json(struct(*)) as found from (
select current_user() as `__mv_fill_session_user__`, current_catalog() as `__mv_fill_session_catalog__`, current_schema() as `__mv_fill_session_schema__`, version() as `__mv_fill_session_spark__`, concat('TIMESTAMP\'', date_format(timestamp_micros(1769925600000000), 'yyyy-MM-dd HH:mm:ss.SSSSSSxxx'), '\'') as `__mv_fill_at__`, concat('DATE\'', date_format(timestamp_micros(1769925600000000), 'yyyy-MM-dd'), '\'') as `__mv_fill_day__`, concat('DATE\'', cast(date_add(timestamp_micros(1769925600000000), 1) as string), '\'') as `__mv_fill_day_after__`
);

describe table `raw`.`drug_reviews`;

describe history `raw`.`drug_reviews` limit 1;

CREATE TABLE IF NOT EXISTS `mart`.`ai_results` (
  result_key STRING COMMENT 'sha256 of function, arguments, prompt version, model, model version, parameters, schema',
  function STRING COMMENT 'the AI function',
  arguments_hash STRING COMMENT 'sha256 of function and arguments: the same under every model',
  model STRING COMMENT 'the model that answered',
  model_version STRING COMMENT 'its declared version',
  identity_hash STRING COMMENT 'sha256 of model, version, prompt version, parameters, schema',
  status STRING COMMENT 'ok, near and similar (under dedupe), error (asked again), refused or given_up (only by recompute_ai); stale, used, submitted, released (no answer)',
  value STRING COMMENT 'the answer: text, or JSON for other types; NULL is an answer where status is ok',
  error_class STRING COMMENT 'why there is no answer: rate_limit, server, timeout, refused, invalid_answer, …',
  error STRING COMMENT 'text of the error',
  attempts INT COMMENT 'how often the provider was asked',
  input_tokens BIGINT COMMENT 'as the provider counted, else four bytes each',
  output_tokens BIGINT COMMENT 'as the provider counted, else four bytes each',
  cost DOUBLE COMMENT 'by the prices of the profile at that time',
  called_at TIMESTAMP COMMENT 'when the answer came',
  next_retry_at TIMESTAMP COMMENT 'an error is not asked again before; NULL: not by itself',
  invocation_id STRING COMMENT 'the dbt run that paid',
  request STRING COMMENT 'the arguments as canonical JSON, only with keep_requests',
  project STRING COMMENT 'the dbt project that paid, or that uses the answer of another',
  batch STRING COMMENT 'the batch that it was asked in (ai_batches); NULL: asked by itself',
  confidence DOUBLE COMMENT 'of a cascade: how sure the model that answered was, 0 to 1; NULL: not asked, or not known',
  steps STRING COMMENT 'of a cascade: JSON of each model asked, its tokens, cost and confidence, and why it was declined',
  cached_tokens BIGINT COMMENT 'of the input tokens, those that the endpoint had cached',
  prompts STRING COMMENT 'the prompt files that the question is from, with version and hash; NULL: written in the SQL',
  near_key STRING COMMENT 'under dedupe: sha2 of the question with case and white space folded; NULL: not folded',
  answered_by STRING COMMENT 'where status is near or similar: the result_key of the question that is asked in its place'
) USING delta
COMMENT 'Answers of AI functions, shared by all models of this schema. Kept by dbt-spark-mv.' TBLPROPERTIES ('spark_mv.format' = '1');

show tblproperties `mart`.`ai_results`;

describe table `mart`.`ai_results`;

describe query select
    review_id,
    drug,
    reviewed_on,
    useful_count,
    review,
    (SELECT max_by(__mv_v, __mv_t) AS __mv_a FROM (SELECT result_key AS __mv_k, value AS __mv_v, called_at AS __mv_t FROM `mart`.`ai_results` WHERE function = 'ai_analyze_sentiment' AND status = 'ok') AS __mv_r WHERE __mv_k = sha2(concat('{"model":"databricks-meta-llama-3-3-70b-instruct","model_version":"databricks-meta-llama-3-3-70b-instruct","prompt":"1"}', concat('{"constant":{},"function":"ai_analyze_sentiment","row":[', nullif(to_json(named_struct('content', cast(review as string)), map('ignoreNullFields', 'true')), '{}'), ']}')), 256)) as sentiment,
    (SELECT max_by(__mv_v, __mv_t) AS __mv_a FROM (SELECT result_key AS __mv_k, value AS __mv_v, called_at AS __mv_t FROM `mart`.`ai_results` WHERE function = 'ai_classify' AND status = 'ok') AS __mv_r WHERE __mv_k = sha2(concat('{"model":"databricks-meta-llama-3-3-70b-instruct","model_version":"databricks-meta-llama-3-3-70b-instruct","prompt":"1"}', concat('{"constant":{"labels":["mood","pain","skin","sleep","bleeding","weight gain"]},"function":"ai_classify","row":[', nullif(to_json(named_struct('content', cast(review as string)), map('ignoreNullFields', 'true')), '{}'), ']}')), 256)) as topic,
    case when rand() < 0.8 then 'train' else 'test' end as split,
    uuid() as row_id
from `raw`.`drug_reviews`
where reviewed_on > DATE'2026-02-01' - interval 30 days;

select to_json(struct(*)) as found from (
SELECT count_if(state = 'missing' AND site = 0) AS missing_0, count_if(state = 'missing' AND site = 1) AS missing_1, count_if(state NOT IN ('missing', 'reused')) AS waiting, count_if(unclaimed) AS unclaimed FROM (WITH __mv_requests AS (SELECT result_key, min(function) AS function, min(arguments_hash) AS arguments_hash, min(request) AS request, min(site) AS site FROM (
SELECT result_key, function, arguments_hash, request, 0 AS site FROM (SELECT sha2(concat('{"model":"databricks-meta-llama-3-3-70b-instruct","model_version":"databricks-meta-llama-3-3-70b-instruct","prompt":"1"}', request), 256) AS result_key, 'ai_analyze_sentiment' AS function, sha2(request, 256) AS arguments_hash, request FROM (SELECT DISTINCT request FROM (SELECT concat('{"constant":{},"function":"ai_analyze_sentiment","row":[', nullif(to_json(named_struct('content', cast(review as string)), map('ignoreNullFields', 'true')), '{}'), ']}') AS request FROM `raw`.`drug_reviews` VERSION AS OF 4 WHERE (reviewed_on > DATE'2026-02-01' - interval 30 days)) AS __mv_d WHERE request IS NOT NULL) AS __mv_q) AS __mv_s
UNION ALL
SELECT result_key, function, arguments_hash, request, 1 AS site FROM (SELECT sha2(concat('{"model":"databricks-meta-llama-3-3-70b-instruct","model_version":"databricks-meta-llama-3-3-70b-instruct","prompt":"1"}', request), 256) AS result_key, 'ai_classify' AS function, sha2(request, 256) AS arguments_hash, request FROM (SELECT DISTINCT request FROM (SELECT concat('{"constant":{"labels":["mood","pain","skin","sleep","bleeding","weight gain"]},"function":"ai_classify","row":[', nullif(to_json(named_struct('content', cast(review as string)), map('ignoreNullFields', 'true')), '{}'), ']}') AS request FROM `raw`.`drug_reviews` VERSION AS OF 4 WHERE (reviewed_on > DATE'2026-02-01' - interval 30 days)) AS __mv_d WHERE request IS NOT NULL) AS __mv_q) AS __mv_s
) AS __mv_u GROUP BY result_key), __mv_known AS (SELECT q.result_key, q.function, q.arguments_hash, q.request, q.site, max(k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status = 'ok') AS ok_at, max(k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status = 'stale') AS stale_at, max(k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status IN ('error', 'refused', 'given_up')) AS error_at, max_by(if(k.error_class IN ('refused'), 'refused', k.status), k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status IN ('error', 'refused', 'given_up')) AS failed_as, collect_list(k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status IN ('error', 'refused', 'given_up') AND k.error_class IN ('batch', 'connection', 'invalid_answer', 'provider_bug', 'rate_limit', 'server', 'timeout')) AS failed_at, max_by(k.next_retry_at, k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status IN ('error', 'refused', 'given_up')) AS retry_at, coalesce(bool_or(k.project = 'p' AND (k.result_key = q.result_key OR k.status = 'ok')), false) AS mine, cast(NULL AS timestamp) AS old_at, size(array_except(collect_set(k.batch) FILTER (WHERE k.result_key = q.result_key AND k.status = 'submitted'), collect_set(k.batch) FILTER (WHERE k.result_key = q.result_key AND k.status <> 'submitted'))) > 0 AS under_way FROM __mv_requests q LEFT JOIN (SELECT result_key, arguments_hash, status, error_class, called_at, next_retry_at, project, batch FROM `mart`.`ai_results` WHERE function IN ('ai_analyze_sentiment', 'ai_classify')) k ON k.result_key = q.result_key GROUP BY ALL) SELECT result_key, function, arguments_hash, request, site, CASE WHEN ok_at > coalesce(stale_at, timestamp '1970-01-01') THEN 'reused' WHEN under_way THEN 'submitted' WHEN error_at > coalesce(stale_at, timestamp '1970-01-01') AND failed_as <> 'error' THEN 'refused' WHEN error_at > coalesce(stale_at, timestamp '1970-01-01') AND (retry_at > timestamp '2026-02-01 06:00:00.000000 UTC') THEN 'blocked' ELSE 'missing' END AS state, old_at, retry_at, size(filter(failed_at, x -> x > coalesce(stale_at, timestamp '1970-01-01'))) AS failures, NOT mine AND ((CASE WHEN ok_at > coalesce(stale_at, timestamp '1970-01-01') THEN 'reused' WHEN under_way THEN 'submitted' WHEN error_at > coalesce(stale_at, timestamp '1970-01-01') AND failed_as <> 'error' THEN 'refused' WHEN error_at > coalesce(stale_at, timestamp '1970-01-01') AND (retry_at > timestamp '2026-02-01 06:00:00.000000 UTC') THEN 'blocked' ELSE 'missing' END) = 'reused' OR old_at IS NOT NULL) AS unclaimed FROM __mv_known) AS p
);

INSERT INTO `mart`.`ai_results` (result_key, function, arguments_hash, model, model_version, identity_hash, status, value, error_class, error, attempts, input_tokens, output_tokens, cost, called_at, next_retry_at, invocation_id, request, project, batch, confidence, steps, cached_tokens, prompts, near_key, answered_by)
SELECT cast(result_key AS STRING) AS result_key, cast('ai_analyze_sentiment' AS STRING) AS function, cast(arguments_hash AS STRING) AS arguments_hash, cast('databricks-meta-llama-3-3-70b-instruct' AS STRING) AS model, cast('databricks-meta-llama-3-3-70b-instruct' AS STRING) AS model_version, cast('c25fe81d62077119463bb7ad6af260294368f5fcd2f61d68b0601a2affe1d224' AS STRING) AS identity_hash, cast('ok' AS STRING) AS status, cast(cast(ai_analyze_sentiment(get_json_object(request, '$.row[0].content')) AS STRING) AS STRING) AS value, cast(NULL AS STRING) AS error_class, cast(NULL AS STRING) AS error, cast(1 AS INT) AS attempts, cast(NULL AS BIGINT) AS input_tokens, cast(NULL AS BIGINT) AS output_tokens, cast(NULL AS DOUBLE) AS cost, cast(current_timestamp() AS TIMESTAMP) AS called_at, cast(NULL AS TIMESTAMP) AS next_retry_at, cast('0a1b' AS STRING) AS invocation_id, cast(NULL AS STRING) AS request, cast('p' AS STRING) AS project, cast(NULL AS STRING) AS batch, cast(NULL AS DOUBLE) AS confidence, cast(NULL AS STRING) AS steps, cast(NULL AS BIGINT) AS cached_tokens, cast(NULL AS STRING) AS prompts, cast(NULL AS STRING) AS near_key, cast(NULL AS STRING) AS answered_by
FROM (
SELECT * FROM (WITH __mv_requests AS (SELECT result_key, min(function) AS function, min(arguments_hash) AS arguments_hash, min(request) AS request, min(site) AS site FROM (
SELECT result_key, function, arguments_hash, request, 0 AS site FROM (SELECT sha2(concat('{"model":"databricks-meta-llama-3-3-70b-instruct","model_version":"databricks-meta-llama-3-3-70b-instruct","prompt":"1"}', request), 256) AS result_key, 'ai_analyze_sentiment' AS function, sha2(request, 256) AS arguments_hash, request FROM (SELECT DISTINCT request FROM (SELECT concat('{"constant":{},"function":"ai_analyze_sentiment","row":[', nullif(to_json(named_struct('content', cast(review as string)), map('ignoreNullFields', 'true')), '{}'), ']}') AS request FROM `raw`.`drug_reviews` VERSION AS OF 4 WHERE (reviewed_on > DATE'2026-02-01' - interval 30 days)) AS __mv_d WHERE request IS NOT NULL) AS __mv_q) AS __mv_s
UNION ALL
SELECT result_key, function, arguments_hash, request, 1 AS site FROM (SELECT sha2(concat('{"model":"databricks-meta-llama-3-3-70b-instruct","model_version":"databricks-meta-llama-3-3-70b-instruct","prompt":"1"}', request), 256) AS result_key, 'ai_classify' AS function, sha2(request, 256) AS arguments_hash, request FROM (SELECT DISTINCT request FROM (SELECT concat('{"constant":{"labels":["mood","pain","skin","sleep","bleeding","weight gain"]},"function":"ai_classify","row":[', nullif(to_json(named_struct('content', cast(review as string)), map('ignoreNullFields', 'true')), '{}'), ']}') AS request FROM `raw`.`drug_reviews` VERSION AS OF 4 WHERE (reviewed_on > DATE'2026-02-01' - interval 30 days)) AS __mv_d WHERE request IS NOT NULL) AS __mv_q) AS __mv_s
) AS __mv_u GROUP BY result_key), __mv_known AS (SELECT q.result_key, q.function, q.arguments_hash, q.request, q.site, max(k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status = 'ok') AS ok_at, max(k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status = 'stale') AS stale_at, max(k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status IN ('error', 'refused', 'given_up')) AS error_at, max_by(if(k.error_class IN ('refused'), 'refused', k.status), k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status IN ('error', 'refused', 'given_up')) AS failed_as, collect_list(k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status IN ('error', 'refused', 'given_up') AND k.error_class IN ('batch', 'connection', 'invalid_answer', 'provider_bug', 'rate_limit', 'server', 'timeout')) AS failed_at, max_by(k.next_retry_at, k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status IN ('error', 'refused', 'given_up')) AS retry_at, coalesce(bool_or(k.project = 'p' AND (k.result_key = q.result_key OR k.status = 'ok')), false) AS mine, cast(NULL AS timestamp) AS old_at, size(array_except(collect_set(k.batch) FILTER (WHERE k.result_key = q.result_key AND k.status = 'submitted'), collect_set(k.batch) FILTER (WHERE k.result_key = q.result_key AND k.status <> 'submitted'))) > 0 AS under_way FROM __mv_requests q LEFT JOIN (SELECT result_key, arguments_hash, status, error_class, called_at, next_retry_at, project, batch FROM `mart`.`ai_results` WHERE function IN ('ai_analyze_sentiment', 'ai_classify')) k ON k.result_key = q.result_key GROUP BY ALL) SELECT result_key, function, arguments_hash, request, site, CASE WHEN ok_at > coalesce(stale_at, timestamp '1970-01-01') THEN 'reused' WHEN under_way THEN 'submitted' WHEN error_at > coalesce(stale_at, timestamp '1970-01-01') AND failed_as <> 'error' THEN 'refused' WHEN error_at > coalesce(stale_at, timestamp '1970-01-01') AND (retry_at > timestamp '2026-02-01 06:00:00.000000 UTC') THEN 'blocked' ELSE 'missing' END AS state, old_at, retry_at, size(filter(failed_at, x -> x > coalesce(stale_at, timestamp '1970-01-01'))) AS failures, NOT mine AND ((CASE WHEN ok_at > coalesce(stale_at, timestamp '1970-01-01') THEN 'reused' WHEN under_way THEN 'submitted' WHEN error_at > coalesce(stale_at, timestamp '1970-01-01') AND failed_as <> 'error' THEN 'refused' WHEN error_at > coalesce(stale_at, timestamp '1970-01-01') AND (retry_at > timestamp '2026-02-01 06:00:00.000000 UTC') THEN 'blocked' ELSE 'missing' END) = 'reused' OR old_at IS NOT NULL) AS unclaimed FROM __mv_known) AS p WHERE state = 'missing' AND site = 0
) AS q;

INSERT INTO `mart`.`ai_results` (result_key, function, arguments_hash, model, model_version, identity_hash, status, value, error_class, error, attempts, input_tokens, output_tokens, cost, called_at, next_retry_at, invocation_id, request, project, batch, confidence, steps, cached_tokens, prompts, near_key, answered_by)
SELECT cast(result_key AS STRING) AS result_key, cast('ai_classify' AS STRING) AS function, cast(arguments_hash AS STRING) AS arguments_hash, cast('databricks-meta-llama-3-3-70b-instruct' AS STRING) AS model, cast('databricks-meta-llama-3-3-70b-instruct' AS STRING) AS model_version, cast('c25fe81d62077119463bb7ad6af260294368f5fcd2f61d68b0601a2affe1d224' AS STRING) AS identity_hash, cast('ok' AS STRING) AS status, cast(cast(ai_classify(get_json_object(request, '$.row[0].content'), array('mood', 'pain', 'skin', 'sleep', 'bleeding', 'weight gain')) AS STRING) AS STRING) AS value, cast(NULL AS STRING) AS error_class, cast(NULL AS STRING) AS error, cast(1 AS INT) AS attempts, cast(NULL AS BIGINT) AS input_tokens, cast(NULL AS BIGINT) AS output_tokens, cast(NULL AS DOUBLE) AS cost, cast(current_timestamp() AS TIMESTAMP) AS called_at, cast(NULL AS TIMESTAMP) AS next_retry_at, cast('0a1b' AS STRING) AS invocation_id, cast(NULL AS STRING) AS request, cast('p' AS STRING) AS project, cast(NULL AS STRING) AS batch, cast(NULL AS DOUBLE) AS confidence, cast(NULL AS STRING) AS steps, cast(NULL AS BIGINT) AS cached_tokens, cast(NULL AS STRING) AS prompts, cast(NULL AS STRING) AS near_key, cast(NULL AS STRING) AS answered_by
FROM (
SELECT * FROM (WITH __mv_requests AS (SELECT result_key, min(function) AS function, min(arguments_hash) AS arguments_hash, min(request) AS request, min(site) AS site FROM (
SELECT result_key, function, arguments_hash, request, 0 AS site FROM (SELECT sha2(concat('{"model":"databricks-meta-llama-3-3-70b-instruct","model_version":"databricks-meta-llama-3-3-70b-instruct","prompt":"1"}', request), 256) AS result_key, 'ai_analyze_sentiment' AS function, sha2(request, 256) AS arguments_hash, request FROM (SELECT DISTINCT request FROM (SELECT concat('{"constant":{},"function":"ai_analyze_sentiment","row":[', nullif(to_json(named_struct('content', cast(review as string)), map('ignoreNullFields', 'true')), '{}'), ']}') AS request FROM `raw`.`drug_reviews` VERSION AS OF 4 WHERE (reviewed_on > DATE'2026-02-01' - interval 30 days)) AS __mv_d WHERE request IS NOT NULL) AS __mv_q) AS __mv_s
UNION ALL
SELECT result_key, function, arguments_hash, request, 1 AS site FROM (SELECT sha2(concat('{"model":"databricks-meta-llama-3-3-70b-instruct","model_version":"databricks-meta-llama-3-3-70b-instruct","prompt":"1"}', request), 256) AS result_key, 'ai_classify' AS function, sha2(request, 256) AS arguments_hash, request FROM (SELECT DISTINCT request FROM (SELECT concat('{"constant":{"labels":["mood","pain","skin","sleep","bleeding","weight gain"]},"function":"ai_classify","row":[', nullif(to_json(named_struct('content', cast(review as string)), map('ignoreNullFields', 'true')), '{}'), ']}') AS request FROM `raw`.`drug_reviews` VERSION AS OF 4 WHERE (reviewed_on > DATE'2026-02-01' - interval 30 days)) AS __mv_d WHERE request IS NOT NULL) AS __mv_q) AS __mv_s
) AS __mv_u GROUP BY result_key), __mv_known AS (SELECT q.result_key, q.function, q.arguments_hash, q.request, q.site, max(k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status = 'ok') AS ok_at, max(k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status = 'stale') AS stale_at, max(k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status IN ('error', 'refused', 'given_up')) AS error_at, max_by(if(k.error_class IN ('refused'), 'refused', k.status), k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status IN ('error', 'refused', 'given_up')) AS failed_as, collect_list(k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status IN ('error', 'refused', 'given_up') AND k.error_class IN ('batch', 'connection', 'invalid_answer', 'provider_bug', 'rate_limit', 'server', 'timeout')) AS failed_at, max_by(k.next_retry_at, k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status IN ('error', 'refused', 'given_up')) AS retry_at, coalesce(bool_or(k.project = 'p' AND (k.result_key = q.result_key OR k.status = 'ok')), false) AS mine, cast(NULL AS timestamp) AS old_at, size(array_except(collect_set(k.batch) FILTER (WHERE k.result_key = q.result_key AND k.status = 'submitted'), collect_set(k.batch) FILTER (WHERE k.result_key = q.result_key AND k.status <> 'submitted'))) > 0 AS under_way FROM __mv_requests q LEFT JOIN (SELECT result_key, arguments_hash, status, error_class, called_at, next_retry_at, project, batch FROM `mart`.`ai_results` WHERE function IN ('ai_analyze_sentiment', 'ai_classify')) k ON k.result_key = q.result_key GROUP BY ALL) SELECT result_key, function, arguments_hash, request, site, CASE WHEN ok_at > coalesce(stale_at, timestamp '1970-01-01') THEN 'reused' WHEN under_way THEN 'submitted' WHEN error_at > coalesce(stale_at, timestamp '1970-01-01') AND failed_as <> 'error' THEN 'refused' WHEN error_at > coalesce(stale_at, timestamp '1970-01-01') AND (retry_at > timestamp '2026-02-01 06:00:00.000000 UTC') THEN 'blocked' ELSE 'missing' END AS state, old_at, retry_at, size(filter(failed_at, x -> x > coalesce(stale_at, timestamp '1970-01-01'))) AS failures, NOT mine AND ((CASE WHEN ok_at > coalesce(stale_at, timestamp '1970-01-01') THEN 'reused' WHEN under_way THEN 'submitted' WHEN error_at > coalesce(stale_at, timestamp '1970-01-01') AND failed_as <> 'error' THEN 'refused' WHEN error_at > coalesce(stale_at, timestamp '1970-01-01') AND (retry_at > timestamp '2026-02-01 06:00:00.000000 UTC') THEN 'blocked' ELSE 'missing' END) = 'reused' OR old_at IS NOT NULL) AS unclaimed FROM __mv_known) AS p WHERE state = 'missing' AND site = 1
) AS q;

create table `mart`.`review_triage__mv_stage_697eebe0_b4894d7bfa08` using delta as
with __mv_query as (
  select *, count(*) over (partition by `review_id`) as __mv_n
  from (
select
    review_id,
    drug,
    reviewed_on,
    useful_count,
    review,
    (SELECT max_by(__mv_v, __mv_t) AS __mv_a FROM (SELECT result_key AS __mv_k, value AS __mv_v, called_at AS __mv_t FROM `mart`.`ai_results` WHERE function = 'ai_analyze_sentiment' AND status = 'ok') AS __mv_r WHERE __mv_k = sha2(concat('{"model":"databricks-meta-llama-3-3-70b-instruct","model_version":"databricks-meta-llama-3-3-70b-instruct","prompt":"1"}', concat('{"constant":{},"function":"ai_analyze_sentiment","row":[', nullif(to_json(named_struct('content', cast(review as string)), map('ignoreNullFields', 'true')), '{}'), ']}')), 256)) as sentiment,
    (SELECT max_by(__mv_v, __mv_t) AS __mv_a FROM (SELECT result_key AS __mv_k, value AS __mv_v, called_at AS __mv_t FROM `mart`.`ai_results` WHERE function = 'ai_classify' AND status = 'ok') AS __mv_r WHERE __mv_k = sha2(concat('{"model":"databricks-meta-llama-3-3-70b-instruct","model_version":"databricks-meta-llama-3-3-70b-instruct","prompt":"1"}', concat('{"constant":{"labels":["mood","pain","skin","sleep","bleeding","weight gain"]},"function":"ai_classify","row":[', nullif(to_json(named_struct('content', cast(review as string)), map('ignoreNullFields', 'true')), '{}'), ']}')), 256)) as topic,
    case when rand() < 0.8 then 'train' else 'test' end as split,
    uuid() as row_id
from `raw`.`drug_reviews` VERSION AS OF 4
where reviewed_on > DATE'2026-02-01' - interval 30 days
  )
)
select
  'I' as __mv_op,
  q.`review_id` as `review_id`,
  q.`drug` as `drug`,
  q.`reviewed_on` as `reviewed_on`,
  q.`useful_count` as `useful_count`,
  q.`review` as `review`,
  q.`sentiment` as `sentiment`,
  q.`topic` as `topic`,
  q.`split` as `split`,
  q.`row_id` as `row_id`,
  q.__mv_n
from __mv_query q;

select to_json(struct(*)) as found from (
select
  count_if(__mv_op = 'I') as inserted,
  count_if(__mv_op = 'U') as updated,
  count_if(__mv_op = 'D') as deleted,
  count_if(__mv_op <> 'D') as remaining,
  count_if(__mv_n > 1 and not (`review_id` is null)) as duplicate_keys,
  min(case when __mv_n > 1 and not (`review_id` is null) then to_json(named_struct('review_id', `review_id`), map('ignoreNullFields', 'false')) end) as duplicate_example,
  count_if(__mv_op <> 'D' and (`review_id` is null)) as null_keys,
  min(case when __mv_op <> 'D' and (`review_id` is null) then to_json(named_struct('review_id', `review_id`), map('ignoreNullFields', 'false')) end) as null_example,
  (select unix_micros((
SELECT min(least(CASE WHEN valid_from > TIMESTAMP'2026-02-01 06:00:00.000000+00:00' THEN valid_from END, CASE WHEN valid_to > TIMESTAMP'2026-02-01 06:00:00.000000+00:00' THEN valid_to END)) AS next_change FROM (SELECT valid_from, valid_to FROM (SELECT CAST(NULL AS TIMESTAMP) AS valid_from, CAST(date_add(reviewed_on, 30) AS TIMESTAMP) AS valid_to
from `raw`.`drug_reviews` VERSION AS OF 4
where ((reviewed_on IS NOT NULL) AND ((((reviewed_on > DATE'2026-02-01' - interval 30 days) AND NOT (reviewed_on > DATE'2026-02-02' - interval 30 days)) OR ((reviewed_on > DATE'2026-02-02' - interval 30 days) AND NOT (reviewed_on > DATE'2026-02-01' - interval 30 days))))))) WHERE valid_from IS NULL OR valid_to IS NULL OR valid_from < valid_to
  ))) as next_change
from `mart`.`review_triage__mv_stage_697eebe0_b4894d7bfa08`
);

select to_json(struct(*)) as found from (
select unix_micros((
SELECT min(least(CASE WHEN valid_from > TIMESTAMP'2026-02-01 06:00:00.000000+00:00' THEN valid_from END, CASE WHEN valid_to > TIMESTAMP'2026-02-01 06:00:00.000000+00:00' THEN valid_to END)) AS next_change FROM (SELECT valid_from, valid_to FROM (SELECT CAST(NULL AS TIMESTAMP) AS valid_from, CAST(date_add(reviewed_on, 30) AS TIMESTAMP) AS valid_to
from `raw`.`drug_reviews` VERSION AS OF 4
where (reviewed_on IS NOT NULL))) WHERE valid_from IS NULL OR valid_to IS NULL OR valid_from < valid_to
)) as next_change
);

set `spark.databricks.delta.write.txnVersion.autoReset.enabled` = `true`;

set `spark.databricks.delta.commitInfo.userMetadata` = `{"clock_solved": true, "columns": {"drug": "661749fdec9e3f0c6e63", "review": "57089e8204b9886e9795", "review_id": "cb2b85e032705c2fbfba", "reviewed_on": "184a9e6efd0051f75869", "row_id": "7de1556464e256ff8e9b", "sentiment": "d7f7125a3b8287f0554b", "split": "09934777dad1514eaf1d", "topic": "7ed8ede47ad82c663e17", "useful_count": "e03d24c8e2181dedb83e"}, "config": "f4c745bc867ee6f4", "kept": {"row_id": "7de1556464e256ff8e9b", "split": "09934777dad1514eaf1d"}, "keys": ["review_id"], "pins": {"current_date": "DATE'2026-02-01'"}, "query": "4e5ebdf215b07b157bc1", "source_columns": {"raw.drug_reviews": "68114498 d89e2b25 1f6b2fa1 047c5faf 3aa1af20"}, "spark_mv": 1, "strategy": "COMPLETE_RECOMPUTE", "as_of": "2026-02-01 06:00:00.000000", "time_zone": "UTC", "sources": {"raw.drug_reviews": {"version": 4, "timestamp": "2026-01-31 00:00:00"}}, "settings": {"Spark": "4.1"}, "next_change_at": "2026-03-01 00:00:00.000000", "base_version": null, "turn": 0, "invocation_id": "0a1b", "started_at": "2026-02-01 06:00:00.000000", "ask_again": "", "target_rows": 3, "pace": {}, "unaudited": 1, "read_twice": {}, "model": "model.p.review_triage", "run_id": "cb83e6c3c1ad7967c756ba99f8f411cd"}`;

set `spark.databricks.delta.write.txnAppId` = `spark_mv:model.p.review_triage`;

set `spark.databricks.delta.write.txnVersion` = `0`;

create table `mart`.`review_triage`
using delta
tblproperties (
  'delta.enableChangeDataFeed' = 'true',
  'delta.enableDeletionVectors' = 'true',
  'spark_mv.model' = 'model.p.review_triage'
)



as
select
  `review_id`,
  `drug`,
  `reviewed_on`,
  `useful_count`,
  `review`,
  `sentiment`,
  `topic`,
  `split`,
  `row_id`
from `mart`.`review_triage__mv_stage_697eebe0_b4894d7bfa08`
where __mv_op <> 'D';

reset `spark.databricks.delta.write.txnVersion.autoReset.enabled`;

reset `spark.databricks.delta.commitInfo.userMetadata`;

reset `spark.databricks.delta.write.txnAppId`;

reset `spark.databricks.delta.write.txnVersion`;

describe history `main`.`mart`.`review_triage` limit 10;

drop table if exists `mart`.`review_triage__mv_stage_697eebe0_b4894d7bfa08`;

-- COMPLETE_RECOMPUTE by macros (the table does not exist yet): 3 inserted, 0 updated, 0 deleted, 4 AI calls

select to_json(struct(*)) as found from (
select current_timezone() as zone, version() as spark, unix_micros(TIMESTAMP'2026-02-01 06:00:00.000000+00:00') as micros, unix_micros(timestampadd(DAY, 1, TIMESTAMP'2026-02-01 06:00:00.000000+00:00')) as near, unix_micros(TIMESTAMP'2026-02-01 06:00:00.000000+00:00') as started, unix_micros(current_timestamp()) as now
);

set;

select to_json(struct(*)) as found from (
select current_user() as `__mv_fill_session_user__`, current_catalog() as `__mv_fill_session_catalog__`, current_schema() as `__mv_fill_session_schema__`, version() as `__mv_fill_session_spark__`, concat('TIMESTAMP\'', date_format(timestamp_micros(1769925600000000), 'yyyy-MM-dd HH:mm:ss.SSSSSSxxx'), '\'') as `__mv_fill_at__`, concat('DATE\'', date_format(timestamp_micros(1769925600000000), 'yyyy-MM-dd'), '\'') as `__mv_fill_day__`, concat('DATE\'', cast(date_add(timestamp_micros(1769925600000000), 1) as string), '\'') as `__mv_fill_day_after__`
);

describe table `raw`.`drug_reviews`;

describe history `raw`.`drug_reviews` limit 1;

CREATE TABLE IF NOT EXISTS `mart`.`ai_results` (
  result_key STRING COMMENT 'sha256 of function, arguments, prompt version, model, model version, parameters, schema',
  function STRING COMMENT 'the AI function',
  arguments_hash STRING COMMENT 'sha256 of function and arguments: the same under every model',
  model STRING COMMENT 'the model that answered',
  model_version STRING COMMENT 'its declared version',
  identity_hash STRING COMMENT 'sha256 of model, version, prompt version, parameters, schema',
  status STRING COMMENT 'ok, near and similar (under dedupe), error (asked again), refused or given_up (only by recompute_ai); stale, used, submitted, released (no answer)',
  value STRING COMMENT 'the answer: text, or JSON for other types; NULL is an answer where status is ok',
  error_class STRING COMMENT 'why there is no answer: rate_limit, server, timeout, refused, invalid_answer, …',
  error STRING COMMENT 'text of the error',
  attempts INT COMMENT 'how often the provider was asked',
  input_tokens BIGINT COMMENT 'as the provider counted, else four bytes each',
  output_tokens BIGINT COMMENT 'as the provider counted, else four bytes each',
  cost DOUBLE COMMENT 'by the prices of the profile at that time',
  called_at TIMESTAMP COMMENT 'when the answer came',
  next_retry_at TIMESTAMP COMMENT 'an error is not asked again before; NULL: not by itself',
  invocation_id STRING COMMENT 'the dbt run that paid',
  request STRING COMMENT 'the arguments as canonical JSON, only with keep_requests',
  project STRING COMMENT 'the dbt project that paid, or that uses the answer of another',
  batch STRING COMMENT 'the batch that it was asked in (ai_batches); NULL: asked by itself',
  confidence DOUBLE COMMENT 'of a cascade: how sure the model that answered was, 0 to 1; NULL: not asked, or not known',
  steps STRING COMMENT 'of a cascade: JSON of each model asked, its tokens, cost and confidence, and why it was declined',
  cached_tokens BIGINT COMMENT 'of the input tokens, those that the endpoint had cached',
  prompts STRING COMMENT 'the prompt files that the question is from, with version and hash; NULL: written in the SQL',
  near_key STRING COMMENT 'under dedupe: sha2 of the question with case and white space folded; NULL: not folded',
  answered_by STRING COMMENT 'where status is near or similar: the result_key of the question that is asked in its place'
) USING delta
COMMENT 'Answers of AI functions, shared by all models of this schema. Kept by dbt-spark-mv.' TBLPROPERTIES ('spark_mv.format' = '1');

show tblproperties `mart`.`ai_results`;

describe table `mart`.`ai_results`;

describe query select
    review_id,
    drug,
    reviewed_on,
    useful_count,
    review,
    (SELECT max_by(__mv_v, __mv_t) AS __mv_a FROM (SELECT result_key AS __mv_k, value AS __mv_v, called_at AS __mv_t FROM `mart`.`ai_results` WHERE function = 'ai_analyze_sentiment' AND status = 'ok') AS __mv_r WHERE __mv_k = sha2(concat('{"model":"databricks-meta-llama-3-3-70b-instruct","model_version":"databricks-meta-llama-3-3-70b-instruct","prompt":"1"}', concat('{"constant":{},"function":"ai_analyze_sentiment","row":[', nullif(to_json(named_struct('content', cast(review as string)), map('ignoreNullFields', 'true')), '{}'), ']}')), 256)) as sentiment,
    (SELECT max_by(__mv_v, __mv_t) AS __mv_a FROM (SELECT result_key AS __mv_k, value AS __mv_v, called_at AS __mv_t FROM `mart`.`ai_results` WHERE function = 'ai_classify' AND status = 'ok') AS __mv_r WHERE __mv_k = sha2(concat('{"model":"databricks-meta-llama-3-3-70b-instruct","model_version":"databricks-meta-llama-3-3-70b-instruct","prompt":"1"}', concat('{"constant":{"labels":["mood","pain","skin","sleep","bleeding","weight gain"]},"function":"ai_classify","row":[', nullif(to_json(named_struct('content', cast(review as string)), map('ignoreNullFields', 'true')), '{}'), ']}')), 256)) as topic,
    case when rand() < 0.8 then 'train' else 'test' end as split,
    uuid() as row_id
from `raw`.`drug_reviews`
where reviewed_on > DATE'2026-02-01' - interval 30 days;

describe detail `main`.`mart`.`review_triage`;

describe history `main`.`mart`.`review_triage` limit 20;

describe table `main`.`mart`.`review_triage`;

describe detail `raw`.`drug_reviews`;

describe history `raw`.`drug_reviews` limit 6;

create table `mart`.`review_triage__mv_stage_697eebe0_b4894d7bfa08_changes_0` using delta as
select `review_id`, `drug`, `reviewed_on`, `useful_count`, `review`, cast(1 as bigint) as __mv_count
from table_changes('`raw`.`drug_reviews`', 5, 5);

select to_json(struct(*)) as found from (
SELECT count_if(state = 'missing' AND site = 0) AS missing_0, count_if(state = 'missing' AND site = 1) AS missing_1, count_if(state NOT IN ('missing', 'reused')) AS waiting, count_if(unclaimed) AS unclaimed FROM (WITH __mv_requests AS (SELECT result_key, min(function) AS function, min(arguments_hash) AS arguments_hash, min(request) AS request, min(site) AS site FROM (
SELECT result_key, function, arguments_hash, request, 0 AS site FROM (SELECT sha2(concat('{"model":"databricks-meta-llama-3-3-70b-instruct","model_version":"databricks-meta-llama-3-3-70b-instruct","prompt":"1"}', request), 256) AS result_key, 'ai_analyze_sentiment' AS function, sha2(request, 256) AS arguments_hash, request FROM (SELECT DISTINCT request FROM (SELECT concat('{"constant":{},"function":"ai_analyze_sentiment","row":[', nullif(to_json(named_struct('content', cast(review as string)), map('ignoreNullFields', 'true')), '{}'), ']}') AS request FROM (SELECT `review_id`, `drug`, `reviewed_on`, `useful_count`, `review` FROM `mart`.`review_triage__mv_stage_697eebe0_b4894d7bfa08_changes_0` LATERAL VIEW explode(array_repeat(0, CAST(__mv_count AS INT))) `__mv_copy` AS `__mv_copy` WHERE __mv_count > 0) AS `drug_reviews` WHERE (reviewed_on > DATE'2026-02-01' - interval 30 days)) AS __mv_d WHERE request IS NOT NULL) AS __mv_q) AS __mv_s
UNION ALL
SELECT result_key, function, arguments_hash, request, 1 AS site FROM (SELECT sha2(concat('{"model":"databricks-meta-llama-3-3-70b-instruct","model_version":"databricks-meta-llama-3-3-70b-instruct","prompt":"1"}', request), 256) AS result_key, 'ai_classify' AS function, sha2(request, 256) AS arguments_hash, request FROM (SELECT DISTINCT request FROM (SELECT concat('{"constant":{"labels":["mood","pain","skin","sleep","bleeding","weight gain"]},"function":"ai_classify","row":[', nullif(to_json(named_struct('content', cast(review as string)), map('ignoreNullFields', 'true')), '{}'), ']}') AS request FROM (SELECT `review_id`, `drug`, `reviewed_on`, `useful_count`, `review` FROM `mart`.`review_triage__mv_stage_697eebe0_b4894d7bfa08_changes_0` LATERAL VIEW explode(array_repeat(0, CAST(__mv_count AS INT))) `__mv_copy` AS `__mv_copy` WHERE __mv_count > 0) AS `drug_reviews` WHERE (reviewed_on > DATE'2026-02-01' - interval 30 days)) AS __mv_d WHERE request IS NOT NULL) AS __mv_q) AS __mv_s
) AS __mv_u GROUP BY result_key), __mv_known AS (SELECT q.result_key, q.function, q.arguments_hash, q.request, q.site, max(k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status = 'ok') AS ok_at, max(k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status = 'stale') AS stale_at, max(k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status IN ('error', 'refused', 'given_up')) AS error_at, max_by(if(k.error_class IN ('refused'), 'refused', k.status), k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status IN ('error', 'refused', 'given_up')) AS failed_as, collect_list(k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status IN ('error', 'refused', 'given_up') AND k.error_class IN ('batch', 'connection', 'invalid_answer', 'provider_bug', 'rate_limit', 'server', 'timeout')) AS failed_at, max_by(k.next_retry_at, k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status IN ('error', 'refused', 'given_up')) AS retry_at, coalesce(bool_or(k.project = 'p' AND (k.result_key = q.result_key OR k.status = 'ok')), false) AS mine, cast(NULL AS timestamp) AS old_at, size(array_except(collect_set(k.batch) FILTER (WHERE k.result_key = q.result_key AND k.status = 'submitted'), collect_set(k.batch) FILTER (WHERE k.result_key = q.result_key AND k.status <> 'submitted'))) > 0 AS under_way FROM __mv_requests q LEFT JOIN (SELECT result_key, arguments_hash, status, error_class, called_at, next_retry_at, project, batch FROM `mart`.`ai_results` WHERE function IN ('ai_analyze_sentiment', 'ai_classify')) k ON k.result_key = q.result_key GROUP BY ALL) SELECT result_key, function, arguments_hash, request, site, CASE WHEN ok_at > coalesce(stale_at, timestamp '1970-01-01') THEN 'reused' WHEN under_way THEN 'submitted' WHEN error_at > coalesce(stale_at, timestamp '1970-01-01') AND failed_as <> 'error' THEN 'refused' WHEN error_at > coalesce(stale_at, timestamp '1970-01-01') AND (retry_at > timestamp '2026-02-01 06:00:00.000000 UTC') THEN 'blocked' ELSE 'missing' END AS state, old_at, retry_at, size(filter(failed_at, x -> x > coalesce(stale_at, timestamp '1970-01-01'))) AS failures, NOT mine AND ((CASE WHEN ok_at > coalesce(stale_at, timestamp '1970-01-01') THEN 'reused' WHEN under_way THEN 'submitted' WHEN error_at > coalesce(stale_at, timestamp '1970-01-01') AND failed_as <> 'error' THEN 'refused' WHEN error_at > coalesce(stale_at, timestamp '1970-01-01') AND (retry_at > timestamp '2026-02-01 06:00:00.000000 UTC') THEN 'blocked' ELSE 'missing' END) = 'reused' OR old_at IS NOT NULL) AS unclaimed FROM __mv_known) AS p
);

INSERT INTO `mart`.`ai_results` (result_key, function, arguments_hash, model, model_version, identity_hash, status, value, error_class, error, attempts, input_tokens, output_tokens, cost, called_at, next_retry_at, invocation_id, request, project, batch, confidence, steps, cached_tokens, prompts, near_key, answered_by)
SELECT cast(result_key AS STRING) AS result_key, cast(function AS STRING) AS function, cast(arguments_hash AS STRING) AS arguments_hash, cast(NULL AS STRING) AS model, cast(NULL AS STRING) AS model_version, cast(NULL AS STRING) AS identity_hash, cast('used' AS STRING) AS status, cast(NULL AS STRING) AS value, cast(NULL AS STRING) AS error_class, cast(NULL AS STRING) AS error, cast(NULL AS INT) AS attempts, cast(NULL AS BIGINT) AS input_tokens, cast(NULL AS BIGINT) AS output_tokens, cast(NULL AS DOUBLE) AS cost, cast(current_timestamp() AS TIMESTAMP) AS called_at, cast(NULL AS TIMESTAMP) AS next_retry_at, cast('0a1b' AS STRING) AS invocation_id, cast(NULL AS STRING) AS request, cast('p' AS STRING) AS project, cast(NULL AS STRING) AS batch, cast(NULL AS DOUBLE) AS confidence, cast(NULL AS STRING) AS steps, cast(NULL AS BIGINT) AS cached_tokens, cast(NULL AS STRING) AS prompts, cast(NULL AS STRING) AS near_key, cast(NULL AS STRING) AS answered_by
FROM (
WITH __mv_requests AS (SELECT result_key, min(function) AS function, min(arguments_hash) AS arguments_hash, min(request) AS request, min(site) AS site FROM (
SELECT result_key, function, arguments_hash, request, 0 AS site FROM (SELECT sha2(concat('{"model":"databricks-meta-llama-3-3-70b-instruct","model_version":"databricks-meta-llama-3-3-70b-instruct","prompt":"1"}', request), 256) AS result_key, 'ai_analyze_sentiment' AS function, sha2(request, 256) AS arguments_hash, request FROM (SELECT DISTINCT request FROM (SELECT concat('{"constant":{},"function":"ai_analyze_sentiment","row":[', nullif(to_json(named_struct('content', cast(review as string)), map('ignoreNullFields', 'true')), '{}'), ']}') AS request FROM (SELECT `review_id`, `drug`, `reviewed_on`, `useful_count`, `review` FROM `mart`.`review_triage__mv_stage_697eebe0_b4894d7bfa08_changes_0` LATERAL VIEW explode(array_repeat(0, CAST(__mv_count AS INT))) `__mv_copy` AS `__mv_copy` WHERE __mv_count > 0) AS `drug_reviews` WHERE (reviewed_on > DATE'2026-02-01' - interval 30 days)) AS __mv_d WHERE request IS NOT NULL) AS __mv_q) AS __mv_s
UNION ALL
SELECT result_key, function, arguments_hash, request, 1 AS site FROM (SELECT sha2(concat('{"model":"databricks-meta-llama-3-3-70b-instruct","model_version":"databricks-meta-llama-3-3-70b-instruct","prompt":"1"}', request), 256) AS result_key, 'ai_classify' AS function, sha2(request, 256) AS arguments_hash, request FROM (SELECT DISTINCT request FROM (SELECT concat('{"constant":{"labels":["mood","pain","skin","sleep","bleeding","weight gain"]},"function":"ai_classify","row":[', nullif(to_json(named_struct('content', cast(review as string)), map('ignoreNullFields', 'true')), '{}'), ']}') AS request FROM (SELECT `review_id`, `drug`, `reviewed_on`, `useful_count`, `review` FROM `mart`.`review_triage__mv_stage_697eebe0_b4894d7bfa08_changes_0` LATERAL VIEW explode(array_repeat(0, CAST(__mv_count AS INT))) `__mv_copy` AS `__mv_copy` WHERE __mv_count > 0) AS `drug_reviews` WHERE (reviewed_on > DATE'2026-02-01' - interval 30 days)) AS __mv_d WHERE request IS NOT NULL) AS __mv_q) AS __mv_s
) AS __mv_u GROUP BY result_key), __mv_known AS (SELECT q.result_key, q.function, q.arguments_hash, q.request, q.site, max(k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status = 'ok') AS ok_at, max(k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status = 'stale') AS stale_at, max(k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status IN ('error', 'refused', 'given_up')) AS error_at, max_by(if(k.error_class IN ('refused'), 'refused', k.status), k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status IN ('error', 'refused', 'given_up')) AS failed_as, collect_list(k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status IN ('error', 'refused', 'given_up') AND k.error_class IN ('batch', 'connection', 'invalid_answer', 'provider_bug', 'rate_limit', 'server', 'timeout')) AS failed_at, max_by(k.next_retry_at, k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status IN ('error', 'refused', 'given_up')) AS retry_at, coalesce(bool_or(k.project = 'p' AND (k.result_key = q.result_key OR k.status = 'ok')), false) AS mine, cast(NULL AS timestamp) AS old_at, size(array_except(collect_set(k.batch) FILTER (WHERE k.result_key = q.result_key AND k.status = 'submitted'), collect_set(k.batch) FILTER (WHERE k.result_key = q.result_key AND k.status <> 'submitted'))) > 0 AS under_way FROM __mv_requests q LEFT JOIN (SELECT result_key, arguments_hash, status, error_class, called_at, next_retry_at, project, batch FROM `mart`.`ai_results` WHERE function IN ('ai_analyze_sentiment', 'ai_classify')) k ON k.result_key = q.result_key GROUP BY ALL) SELECT result_key, function, arguments_hash, request, site, CASE WHEN ok_at > coalesce(stale_at, timestamp '1970-01-01') THEN 'reused' WHEN under_way THEN 'submitted' WHEN error_at > coalesce(stale_at, timestamp '1970-01-01') AND failed_as <> 'error' THEN 'refused' WHEN error_at > coalesce(stale_at, timestamp '1970-01-01') AND (retry_at > timestamp '2026-02-01 06:00:00.000000 UTC') THEN 'blocked' ELSE 'missing' END AS state, old_at, retry_at, size(filter(failed_at, x -> x > coalesce(stale_at, timestamp '1970-01-01'))) AS failures, NOT mine AND ((CASE WHEN ok_at > coalesce(stale_at, timestamp '1970-01-01') THEN 'reused' WHEN under_way THEN 'submitted' WHEN error_at > coalesce(stale_at, timestamp '1970-01-01') AND failed_as <> 'error' THEN 'refused' WHEN error_at > coalesce(stale_at, timestamp '1970-01-01') AND (retry_at > timestamp '2026-02-01 06:00:00.000000 UTC') THEN 'blocked' ELSE 'missing' END) = 'reused' OR old_at IS NOT NULL) AS unclaimed FROM __mv_known
) AS p WHERE unclaimed;

INSERT INTO `mart`.`ai_results` (result_key, function, arguments_hash, model, model_version, identity_hash, status, value, error_class, error, attempts, input_tokens, output_tokens, cost, called_at, next_retry_at, invocation_id, request, project, batch, confidence, steps, cached_tokens, prompts, near_key, answered_by)
SELECT cast(result_key AS STRING) AS result_key, cast('ai_classify' AS STRING) AS function, cast(arguments_hash AS STRING) AS arguments_hash, cast('databricks-meta-llama-3-3-70b-instruct' AS STRING) AS model, cast('databricks-meta-llama-3-3-70b-instruct' AS STRING) AS model_version, cast('c25fe81d62077119463bb7ad6af260294368f5fcd2f61d68b0601a2affe1d224' AS STRING) AS identity_hash, cast('ok' AS STRING) AS status, cast(cast(ai_classify(get_json_object(request, '$.row[0].content'), array('mood', 'pain', 'skin', 'sleep', 'bleeding', 'weight gain')) AS STRING) AS STRING) AS value, cast(NULL AS STRING) AS error_class, cast(NULL AS STRING) AS error, cast(1 AS INT) AS attempts, cast(NULL AS BIGINT) AS input_tokens, cast(NULL AS BIGINT) AS output_tokens, cast(NULL AS DOUBLE) AS cost, cast(current_timestamp() AS TIMESTAMP) AS called_at, cast(NULL AS TIMESTAMP) AS next_retry_at, cast('0a1b' AS STRING) AS invocation_id, cast(NULL AS STRING) AS request, cast('p' AS STRING) AS project, cast(NULL AS STRING) AS batch, cast(NULL AS DOUBLE) AS confidence, cast(NULL AS STRING) AS steps, cast(NULL AS BIGINT) AS cached_tokens, cast(NULL AS STRING) AS prompts, cast(NULL AS STRING) AS near_key, cast(NULL AS STRING) AS answered_by
FROM (
SELECT * FROM (WITH __mv_requests AS (SELECT result_key, min(function) AS function, min(arguments_hash) AS arguments_hash, min(request) AS request, min(site) AS site FROM (
SELECT result_key, function, arguments_hash, request, 0 AS site FROM (SELECT sha2(concat('{"model":"databricks-meta-llama-3-3-70b-instruct","model_version":"databricks-meta-llama-3-3-70b-instruct","prompt":"1"}', request), 256) AS result_key, 'ai_analyze_sentiment' AS function, sha2(request, 256) AS arguments_hash, request FROM (SELECT DISTINCT request FROM (SELECT concat('{"constant":{},"function":"ai_analyze_sentiment","row":[', nullif(to_json(named_struct('content', cast(review as string)), map('ignoreNullFields', 'true')), '{}'), ']}') AS request FROM (SELECT `review_id`, `drug`, `reviewed_on`, `useful_count`, `review` FROM `mart`.`review_triage__mv_stage_697eebe0_b4894d7bfa08_changes_0` LATERAL VIEW explode(array_repeat(0, CAST(__mv_count AS INT))) `__mv_copy` AS `__mv_copy` WHERE __mv_count > 0) AS `drug_reviews` WHERE (reviewed_on > DATE'2026-02-01' - interval 30 days)) AS __mv_d WHERE request IS NOT NULL) AS __mv_q) AS __mv_s
UNION ALL
SELECT result_key, function, arguments_hash, request, 1 AS site FROM (SELECT sha2(concat('{"model":"databricks-meta-llama-3-3-70b-instruct","model_version":"databricks-meta-llama-3-3-70b-instruct","prompt":"1"}', request), 256) AS result_key, 'ai_classify' AS function, sha2(request, 256) AS arguments_hash, request FROM (SELECT DISTINCT request FROM (SELECT concat('{"constant":{"labels":["mood","pain","skin","sleep","bleeding","weight gain"]},"function":"ai_classify","row":[', nullif(to_json(named_struct('content', cast(review as string)), map('ignoreNullFields', 'true')), '{}'), ']}') AS request FROM (SELECT `review_id`, `drug`, `reviewed_on`, `useful_count`, `review` FROM `mart`.`review_triage__mv_stage_697eebe0_b4894d7bfa08_changes_0` LATERAL VIEW explode(array_repeat(0, CAST(__mv_count AS INT))) `__mv_copy` AS `__mv_copy` WHERE __mv_count > 0) AS `drug_reviews` WHERE (reviewed_on > DATE'2026-02-01' - interval 30 days)) AS __mv_d WHERE request IS NOT NULL) AS __mv_q) AS __mv_s
) AS __mv_u GROUP BY result_key), __mv_known AS (SELECT q.result_key, q.function, q.arguments_hash, q.request, q.site, max(k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status = 'ok') AS ok_at, max(k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status = 'stale') AS stale_at, max(k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status IN ('error', 'refused', 'given_up')) AS error_at, max_by(if(k.error_class IN ('refused'), 'refused', k.status), k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status IN ('error', 'refused', 'given_up')) AS failed_as, collect_list(k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status IN ('error', 'refused', 'given_up') AND k.error_class IN ('batch', 'connection', 'invalid_answer', 'provider_bug', 'rate_limit', 'server', 'timeout')) AS failed_at, max_by(k.next_retry_at, k.called_at) FILTER (WHERE k.result_key = q.result_key AND k.status IN ('error', 'refused', 'given_up')) AS retry_at, coalesce(bool_or(k.project = 'p' AND (k.result_key = q.result_key OR k.status = 'ok')), false) AS mine, cast(NULL AS timestamp) AS old_at, size(array_except(collect_set(k.batch) FILTER (WHERE k.result_key = q.result_key AND k.status = 'submitted'), collect_set(k.batch) FILTER (WHERE k.result_key = q.result_key AND k.status <> 'submitted'))) > 0 AS under_way FROM __mv_requests q LEFT JOIN (SELECT result_key, arguments_hash, status, error_class, called_at, next_retry_at, project, batch FROM `mart`.`ai_results` WHERE function IN ('ai_analyze_sentiment', 'ai_classify')) k ON k.result_key = q.result_key GROUP BY ALL) SELECT result_key, function, arguments_hash, request, site, CASE WHEN ok_at > coalesce(stale_at, timestamp '1970-01-01') THEN 'reused' WHEN under_way THEN 'submitted' WHEN error_at > coalesce(stale_at, timestamp '1970-01-01') AND failed_as <> 'error' THEN 'refused' WHEN error_at > coalesce(stale_at, timestamp '1970-01-01') AND (retry_at > timestamp '2026-02-01 06:00:00.000000 UTC') THEN 'blocked' ELSE 'missing' END AS state, old_at, retry_at, size(filter(failed_at, x -> x > coalesce(stale_at, timestamp '1970-01-01'))) AS failures, NOT mine AND ((CASE WHEN ok_at > coalesce(stale_at, timestamp '1970-01-01') THEN 'reused' WHEN under_way THEN 'submitted' WHEN error_at > coalesce(stale_at, timestamp '1970-01-01') AND failed_as <> 'error' THEN 'refused' WHEN error_at > coalesce(stale_at, timestamp '1970-01-01') AND (retry_at > timestamp '2026-02-01 06:00:00.000000 UTC') THEN 'blocked' ELSE 'missing' END) = 'reused' OR old_at IS NOT NULL) AS unclaimed FROM __mv_known) AS p WHERE state = 'missing' AND site = 1
) AS q;

create table `mart`.`review_triage__mv_stage_697eebe0_b4894d7bfa08` using delta as
with __mv_query as (
  select *, count(*) over (partition by `review_id`) as __mv_n
  from (
select
    review_id,
    drug,
    reviewed_on,
    useful_count,
    review,
    (SELECT max_by(__mv_v, __mv_t) AS __mv_a FROM (SELECT result_key AS __mv_k, value AS __mv_v, called_at AS __mv_t FROM `mart`.`ai_results` WHERE function = 'ai_analyze_sentiment' AND status = 'ok') AS __mv_r WHERE __mv_k = sha2(concat('{"model":"databricks-meta-llama-3-3-70b-instruct","model_version":"databricks-meta-llama-3-3-70b-instruct","prompt":"1"}', concat('{"constant":{},"function":"ai_analyze_sentiment","row":[', nullif(to_json(named_struct('content', cast(review as string)), map('ignoreNullFields', 'true')), '{}'), ']}')), 256)) as sentiment,
    (SELECT max_by(__mv_v, __mv_t) AS __mv_a FROM (SELECT result_key AS __mv_k, value AS __mv_v, called_at AS __mv_t FROM `mart`.`ai_results` WHERE function = 'ai_classify' AND status = 'ok') AS __mv_r WHERE __mv_k = sha2(concat('{"model":"databricks-meta-llama-3-3-70b-instruct","model_version":"databricks-meta-llama-3-3-70b-instruct","prompt":"1"}', concat('{"constant":{"labels":["mood","pain","skin","sleep","bleeding","weight gain"]},"function":"ai_classify","row":[', nullif(to_json(named_struct('content', cast(review as string)), map('ignoreNullFields', 'true')), '{}'), ']}')), 256)) as topic,
    case when rand() < 0.8 then 'train' else 'test' end as split,
    uuid() as row_id
from (SELECT `review_id`, `drug`, `reviewed_on`, `useful_count`, `review` FROM `mart`.`review_triage__mv_stage_697eebe0_b4894d7bfa08_changes_0` LATERAL VIEW explode(array_repeat(0, CAST(__mv_count AS INT))) `__mv_copy` AS `__mv_copy` WHERE __mv_count > 0) AS `drug_reviews`
where reviewed_on > DATE'2026-02-01' - interval 30 days
  )
)
select
  'I' as __mv_op,
  q.`review_id` as `review_id`,
  q.`drug` as `drug`,
  q.`reviewed_on` as `reviewed_on`,
  q.`useful_count` as `useful_count`,
  q.`review` as `review`,
  q.`sentiment` as `sentiment`,
  q.`topic` as `topic`,
  q.`split` as `split`,
  q.`row_id` as `row_id`,
  q.__mv_n
from __mv_query q;

select to_json(struct(*)) as found from (
select
  count_if(__mv_op = 'I') as inserted,
  count_if(__mv_op = 'U') as updated,
  count_if(__mv_op = 'D') as deleted,
  count_if(__mv_op <> 'D') as remaining,
  count_if(__mv_n > 1 and not (`review_id` is null)) as duplicate_keys,
  min(case when __mv_n > 1 and not (`review_id` is null) then to_json(named_struct('review_id', `review_id`), map('ignoreNullFields', 'false')) end) as duplicate_example,
  count_if(__mv_op <> 'D' and (`review_id` is null)) as null_keys,
  min(case when __mv_op <> 'D' and (`review_id` is null) then to_json(named_struct('review_id', `review_id`), map('ignoreNullFields', 'false')) end) as null_example,
  (select unix_micros((
SELECT least(TIMESTAMP'2026-03-01 00:00:00.000000 UTC', (
SELECT min(least(CASE WHEN valid_from > TIMESTAMP'2026-02-01 06:00:00.000000+00:00' THEN valid_from END, CASE WHEN valid_to > TIMESTAMP'2026-02-01 06:00:00.000000+00:00' THEN valid_to END)) AS next_change FROM (SELECT valid_from, valid_to FROM (SELECT CAST(NULL AS TIMESTAMP) AS valid_from, CAST(date_add(reviewed_on, 30) AS TIMESTAMP) AS valid_to
from (SELECT `review_id`, `drug`, `reviewed_on`, `useful_count`, `review` FROM `mart`.`review_triage__mv_stage_697eebe0_b4894d7bfa08_changes_0` LATERAL VIEW explode(array_repeat(0, CAST(__mv_count AS INT))) `__mv_copy` AS `__mv_copy` WHERE __mv_count > 0) AS `drug_reviews`
where (reviewed_on IS NOT NULL))) WHERE valid_from IS NULL OR valid_to IS NULL OR valid_from < valid_to
))
  ))) as next_change
from `mart`.`review_triage__mv_stage_697eebe0_b4894d7bfa08`
);

select to_json(struct(*)) as found from (
select
  count_if(not __mv_leaves) as duplicate_keys,
  min(case when not __mv_leaves then to_json(named_struct('review_id', s.`review_id`)) end) as duplicate_example,
  count_if(__mv_leaves) as returned_keys
from `mart`.`review_triage__mv_stage_697eebe0_b4894d7bfa08` s
join (
  select `review_id`, false as __mv_leaves
  from `mart`.`review_triage`
) t
on s.`review_id` = t.`review_id`
where s.__mv_op = 'I'
);

set `spark.databricks.delta.write.txnVersion.autoReset.enabled` = `true`;

set `spark.databricks.delta.commitInfo.userMetadata` = `{"clock_solved": true, "columns": {"drug": "661749fdec9e3f0c6e63", "review": "57089e8204b9886e9795", "review_id": "cb2b85e032705c2fbfba", "reviewed_on": "184a9e6efd0051f75869", "row_id": "7de1556464e256ff8e9b", "sentiment": "d7f7125a3b8287f0554b", "split": "09934777dad1514eaf1d", "topic": "7ed8ede47ad82c663e17", "useful_count": "e03d24c8e2181dedb83e"}, "config": "f4c745bc867ee6f4", "kept": {"row_id": "7de1556464e256ff8e9b", "split": "09934777dad1514eaf1d"}, "keys": ["review_id"], "pins": {"current_date": "DATE'2026-02-01'"}, "query": "4e5ebdf215b07b157bc1", "source_columns": {"raw.drug_reviews": "68114498 d89e2b25 1f6b2fa1 047c5faf 3aa1af20"}, "spark_mv": 1, "strategy": "APPEND_ONLY", "as_of": "2026-02-01 06:00:00.000000", "time_zone": "UTC", "sources": {"raw.drug_reviews": {"version": 5, "timestamp": "2026-01-31 12:00:00"}}, "settings": {"Spark": "4.1"}, "next_change_at": "2026-03-01 00:00:00.000000", "base_version": 0, "turn": 1, "invocation_id": "0a1b", "started_at": "2026-02-01 06:00:00.000000", "ask_again": "", "target_rows": 4, "pace": {}, "unaudited": 2, "read_twice": {}, "model": "model.p.review_triage", "run_id": "cb83e6c3c1ad7967c756ba99f8f411cd"}`;

set `spark.databricks.delta.write.txnAppId` = `spark_mv:model.p.review_triage`;

set `spark.databricks.delta.write.txnVersion` = `1`;

insert into `mart`.`review_triage` (`review_id`, `drug`, `reviewed_on`, `useful_count`, `review`, `sentiment`, `topic`, `split`, `row_id`)
select `review_id`, `drug`, `reviewed_on`, `useful_count`, `review`, `sentiment`, `topic`, `split`, `row_id`
from `mart`.`review_triage__mv_stage_697eebe0_b4894d7bfa08`
where __mv_op = 'I';

reset `spark.databricks.delta.write.txnVersion.autoReset.enabled`;

reset `spark.databricks.delta.commitInfo.userMetadata`;

reset `spark.databricks.delta.write.txnAppId`;

reset `spark.databricks.delta.write.txnVersion`;

describe history `main`.`mart`.`review_triage` limit 10;

drop table if exists `mart`.`review_triage__mv_stage_697eebe0_b4894d7bfa08_changes_0`;

drop table if exists `mart`.`review_triage__mv_stage_697eebe0_b4894d7bfa08`;

-- APPEND_ONLY by macros (a source changed): 1 inserted, 0 updated, 0 deleted, 1 AI calls
