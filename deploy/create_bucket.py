"""Creates the bucket of GROVE_S3_BUCKET, if it does not exist; a service of compose.yaml.

The names are those of docs/reference/environment.md. Ends with 1 and the cause if it cannot.
"""

from __future__ import annotations

import os
import sys

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

ALREADY_THERE = {"BucketAlreadyOwnedByYou", "BucketAlreadyExists"}
ATTEMPTS = 8
"""With pauses of up to 20 s: the store starts at the same time."""


def main() -> int:
    if not (bucket := os.environ.get("GROVE_S3_BUCKET", "")):
        print("GROVE_S3_BUCKET is not set: nothing to do")
        return 0
    region = os.environ.get("GROVE_S3_REGION") or "us-east-1"
    given = {} if region == "us-east-1" else {"LocationConstraint": region}
    try:
        client = boto3.client(
            "s3",
            endpoint_url=os.environ.get("GROVE_S3_ENDPOINT") or None,
            region_name=region,
            aws_access_key_id=os.environ.get("GROVE_S3_KEY") or None,
            aws_secret_access_key=os.environ.get("GROVE_S3_SECRET") or None,
            config=Config(
                connect_timeout=5,
                read_timeout=20,
                retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
                s3={"addressing_style": "path"},
            ),
        )
        options = {"CreateBucketConfiguration": given} if given else {}
        client.create_bucket(Bucket=bucket, **options)
    except (BotoCoreError, ClientError, ValueError) as error:
        code = getattr(error, "response", {}).get("Error", {}).get("Code", "")
        if code not in ALREADY_THERE:
            print(f"GROVE_S3_BUCKET = {bucket!r} cannot be created: {error}", file=sys.stderr)
            return 1
    print(f"the bucket {bucket} exists")
    return 0


if __name__ == "__main__":
    sys.exit(main())
