"""The HTTP API, ``/api/v1``: what the desk can do, for programs and for the console.

Every operation is one function with a decorator of ``operations.Operations``. The routes and the OpenAPI document are
made from these.
"""
