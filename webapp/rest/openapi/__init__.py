"""The OpenAPI document: links and examples."""
