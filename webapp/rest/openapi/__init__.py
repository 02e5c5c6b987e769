"""OpenAPI document: links and examples."""
