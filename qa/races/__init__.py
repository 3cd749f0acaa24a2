"""Refreshes that race: processes and threads, over one folder, on two Spark servers.

Every version that any of them commits is kept in the log, with the frontier that it claims. In the
end each is compared with its query over exactly that frontier: a change that is applied twice and
taken back a version later is found, too.
"""
