"""Patches of all four kinds, and who owns which field. Pure: documents in, documents out.

- `json_patch`  operations one after the other
- `merge_patch`  mappings joined, null removes
- `strategic`  joined by the table of types
- `patch_types`  how a strategic merge patch joins each field
- `element_order`  the order of a list that it has joined
- `applying`  server-side apply, and owners after every other write
- `field_ownership`  how owners of fields change with an object
- `managers`  `metadata.managedFields`, read and written
- `last_applied`  what client-side apply left on an object
- `field_sets`  sets of fields, as `fieldsV1` holds them
- `shapes`  whether a value may be a scalar, a list or a mapping, and what is owned as a whole
- `implied_values`  what Go's structures hold although nobody said it
- `typed_values`  which fields a value has, in which two differ
- `typed_merge`  an object and what somebody wants of it, made one
- `go_words`  values as Go prints them
- `refusals`  what the ways to patch refuse alike
"""
