"""Django project of the site: what people see, who may see it, and what is stored."""

__version__ = "0.2.0"
