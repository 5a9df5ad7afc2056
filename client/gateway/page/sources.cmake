# What the page is put together from, in this order.
set(PAGE_STYLES css/base.css css/parts.css css/overview.css css/lists.css css/charts.css css/rollout.css)
set(PAGE_SCRIPTS
    js/dom.js js/format.js js/store.js js/link.js js/words.js js/explain.js js/warnings.js js/hover.js js/charts.js js/gantt.js
    js/parts.js js/table.js js/model.js js/live.js js/rollout_source.js js/tokens.js js/messages.js
    js/views/overview.js js/views/pipeline.js js/views/rollouts.js js/views/rollout.js js/views/facts.js js/views/groups.js
    js/views/streams.js js/views/stream.js js/views/failures.js js/views/fleet.js
    js/router.js js/page.js)
