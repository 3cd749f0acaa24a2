"""How the tables of TPC-DS refer to each other."""

from __future__ import annotations

from dataclasses import dataclass

KEYS = {
    "date_dim": "d_date_sk",
    "time_dim": "t_time_sk",
    "item": "i_item_sk",
    "customer_address": "ca_address_sk",
    "customer_demographics": "cd_demo_sk",
    "household_demographics": "hd_demo_sk",
    "customer": "c_customer_sk",
    "call_center": "cc_call_center_sk",
    "catalog_page": "cp_catalog_page_sk",
    "promotion": "p_promo_sk",
    "reason": "r_reason_sk",
    "ship_mode": "sm_ship_mode_sk",
    "store": "s_store_sk",
    "warehouse": "w_warehouse_sk",
    "web_page": "wp_web_page_sk",
    "web_site": "web_site_sk",
}
"""The keys of the tables that others refer to; each refers to those before it only."""
_ENDINGS = {
    "_addr_sk": "customer_address",
    "_cdemo_sk": "customer_demographics",
    "_hdemo_sk": "household_demographics",
    "_promo_sk": "promotion",
} | {f"_{table.removesuffix('_dim')}_sk": table for table in KEYS}


@dataclass(frozen=True)
class Channel:
    sales: str
    returns: str
    prefix: str
    prefix_of_returns: str
    number: str
    """What a sale and its return have in common, without a prefix; with the item it is a key."""


CHANNELS = (
    Channel("store_sales", "store_returns", "ss", "sr", "ticket_number"),
    Channel("catalog_sales", "catalog_returns", "cs", "cr", "order_number"),
    Channel("web_sales", "web_returns", "ws", "wr", "order_number"),
)
FACTS = ("inventory", *(table for each in CHANNELS for table in (each.sales, each.returns)))


def referred(column: str) -> str | None:
    """The table that a column refers to, by the end of its name; None for its own key.

    >>> referred("cs_ship_addr_sk"), referred("c_customer_sk"), referred("ss_quantity")
    ('customer_address', None, None)
    """
    if column in KEYS.values():
        return None
    return next((table for ending, table in _ENDINGS.items() if column.endswith(ending)), None)
