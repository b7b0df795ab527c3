"""What the Kubernetes API answers to whom, as values. Pure: documents in, documents out.

- `errors`  what is refused, as a `Status`
- `access`  who may do what
- `media`  media types that a client takes, answers that are bytes already
- `paths`  where a URL leads: a request's verb, resource and object

What there is:

- `served`, `catalogue`  a resource that is served; all of them
- `built_in`, `custom`, `order`  which are built in, which CustomResourceDefinitions add, in which order
- `definitions`  how CustomResourceDefinitions stand beside each other, which their status says
- `discovery`  the documents of discovery, aggregated and plain, and the version
- `openapi`, `schemas`  the documents of OpenAPI v3, their components; `openapi_v2` the one of v2

Reading:

- `items`  one version of an object, and the step from one to the next
- `shelves`  the objects of one resource, in order
- `store`  all objects as of one position, fed as an informer feeds a view
- `relisting`  steps out of differences: of one message, of a listing anew
- `history`  what changed lately
- `selecting`  label and field selectors
- `listing`  GET and LIST: versions and pages
- `watching`, `turns`  WATCH: what each watcher is told, and when it may be sent
- `completing`  what is shown of objects although it is not stored
- `forms`  how objects are written: whole, their metadata, lists, events
- `hidden_values`  what stands for values of Secrets that are not shown
- `tabling`, `columns`, `document_cells`  the same as a table
- `json_paths`  JSONPath, as definitions of custom resources use it

Events and usage:

- `event_store`, `event_telling`  all events; those that are told from what is stored
- `event_forms`, `event_rules`  events in their two groups; what a client may write as one
- `metering`  what nodes and pods use

Writing:

- `protobuf`, `protobuf_shapes`  bodies in protobuf, as documents
- `patching`  patches, and who manages which field
- `deleting`  what a deletion asks for, and how it is answered
- `bindings`  what somebody else's scheduler asks for, and what the binder answers
- `statuses`  what is stored of a status that somebody writes
- `versions`, `autoscalers`  an object in the version that is asked for, and in the one that is stored
- `scaling`  the scale of what has replicas
- `go_decoding`  what Go says of JSON that it cannot read
- `outcomes`  what the api answers about an object, as refusals
"""
