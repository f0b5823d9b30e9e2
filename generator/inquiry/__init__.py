"""Asking about definitions by executing them: workers, their children, what is kept.

An inquiry says what is asked, and names the module that answers in a child process;
nothing here knows which inquiries there are.
"""
