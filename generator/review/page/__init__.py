"""The review as an HTML page: rows, figures and differences for its template."""
