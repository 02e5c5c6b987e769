"""A driver that joins a Ray: as this account with the token that it is given first, then as another
account without a token, and with each of the other tokens.

Run with the address and the tokens as JSON; prints a JSON list of what each attempt got.
"""

import json
import os
import sys

import ray

from engine.config.deadlines import patience
from engine.run.own_ray import enter_environment

NOBODY = 65534


@ray.remote(num_cpus=0)
def account():
    return os.getuid()


def attempt(address, mode, token):
    """Returns the account that a task of ours ran as, or the refusal."""
    enter_environment({"RAY_AUTH_MODE": mode, "RAY_AUTH_TOKEN": token})
    try:
        ray.init(address=address, logging_level="error", log_to_driver=False)
        return ray.get(account.remote(), timeout=60 * patience())
    except (ConnectionError, ray.exceptions.RayError) as error:
        return f"{error} {error.__cause__}"
    finally:
        ray.shutdown()


def main():
    address, (right, *wrong) = sys.argv[1], json.loads(sys.argv[2])
    # First with the token, which also imports all that a join needs: another account may not be
    # able to read it.
    results = [attempt(address, "token", right)]
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    results.append(attempt(address, "disabled", None))
    results += [attempt(address, "token", token) for token in wrong]
    print(json.dumps(results))


if __name__ == "__main__":
    main()
