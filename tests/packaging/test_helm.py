"""Tests of the chart in `deploy/helm/grove`: helm lints and renders it, no cluster runs it.

What it renders is held against Kubernetes' own schemas, the entry point of the image, the variables
that Grove reads, and the versions that are pinned.
"""

from __future__ import annotations

import re
import subprocess
import tomllib
from functools import cache

import pytest
import yaml

import webapp
from engine.config.deadlines import PATIENCE
from engine.run.own_ray import ray_settings
from tests.helpers.extras import needed
from tests.helpers.helm import REMEDY, helm
from tests.packaging.builds import ROOT

CHART = ROOT / "deploy" / "helm" / "grove"
KUBERNETES = "1.34"
ALL_ON = (
    "--set=ingress.tls.enabled=true", "--set=metrics.enabled=true", "--set=s3.bucket=b",
    "--set=s3.endpoint=http://s3:9000",
    "--set=ingress.trustedProxies={10.0.0.0/8}", "--set=env.GROVE_SITE_URL=https://grove.example.org",
)  # fmt: skip
INSTALLATIONS = {
    "default": (),
    "all on": ALL_ON,
    "one node": (f"--values={CHART / 'values-one-node.yaml'}",),
    "cluster": (f"--values={CHART / 'values-cluster.yaml'}",),
}
pytestmark = [
    pytest.mark.large,
    pytest.mark.skipif(helm() is None, reason=f"helm is not installed: {REMEDY}"),
]


def run_helm(*words):
    return subprocess.run([helm(), *words], capture_output=True, text=True, timeout=120)


@cache
def rendered(*options):
    """The objects of a release `r` with these options."""
    done = run_helm("template", "r", str(CHART), "--namespace", "grove", *options)
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one]


def pods(objects):
    """{name: spec} of every pod that the objects lead to, those of Ray's groups included."""
    results = {}
    for one in objects:
        name, spec = f"{one['kind']} {one['metadata']['name']}", one.get("spec", {})
        if one["kind"] == "RayCluster":
            results[f"{name} head"] = spec["headGroupSpec"]["template"]
            for group in spec["workerGroupSpecs"]:
                results[f"{name} {group['groupName']}"] = group["template"]
        elif "template" in spec:
            results[name] = spec["template"]
    return results


def containers(pod):
    return [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]


def of_grove(objects):
    """(pod, container) of Grove's image."""
    every = [(pod, one) for pod in pods(objects).values() for one in containers(pod)]
    return [(pod, one) for pod, one in every if one["image"].startswith("grove:")]


@pytest.mark.parametrize("options", INSTALLATIONS.values(), ids=INSTALLATIONS)
def test_helm_lints_it_and_kubernetes_knows_every_field(options):
    linted = run_helm("lint", "--strict", str(CHART), *options)
    assert linted.returncode == 0, linted.stdout
    validate = needed("kubernetes_validate", "python3 workers/local/install.py dev").validate
    objects = rendered(*options)
    own = [one for one in objects if one["kind"] != "RayCluster"]
    assert len(objects) - len(own) == (options == INSTALLATIONS["cluster"])
    in_pods = [{"apiVersion": "v1", "kind": "Pod", **pod} for pod in pods(objects).values()]
    for one in [*own, *in_pods]:
        one = {**one, "metadata": {"name": "a", **one["metadata"]}}
        validate(one, KUBERNETES, strict=True)


@pytest.mark.parametrize("options", INSTALLATIONS.values(), ids=INSTALLATIONS)
def test_no_container_is_root_and_no_secret_is_written(options):
    objects = rendered(*options)
    assert "Secret" not in {one["kind"] for one in objects}
    for name, pod in pods(objects).items():
        security = pod["spec"]["securityContext"]
        assert security["runAsNonRoot"] and security["runAsUser"] > 0, name
        assert pod["spec"]["automountServiceAccountToken"] is False, name
        volumes = {volume["name"] for volume in pod["spec"].get("volumes", [])} | {"data"}
        for one in containers(pod):
            own = one["securityContext"]
            assert own["readOnlyRootFilesystem"] and not own["allowPrivilegeEscalation"], name
            assert own["capabilities"] == {"drop": ["ALL"]}, name
            assert one["resources"]["limits"]["memory"] and one["resources"]["requests"], name
            assert {mount["name"] for mount in one.get("volumeMounts", [])} <= volumes, name
            for variable in one.get("env", []):
                if re.search("PASSWORD|KEY|TOKEN|HEADERS|SECRET", variable["name"]):
                    assert variable["valueFrom"]["secretKeyRef"]["name"] == "grove", name


@pytest.mark.parametrize("options", INSTALLATIONS.values(), ids=INSTALLATIONS)
def test_every_container_runs_a_role_and_every_variable_is_one_that_grove_reads(options):
    entrypoint = (ROOT / "deploy" / "entrypoint.sh").read_text()
    roles = {(name,) for name in re.findall(r"^(\w+)\)$", entrypoint, re.MULTILINE)}
    meanings = tomllib.loads((ROOT / "docs" / "environment.toml").read_text())
    known = {name for section in meanings.values() for name in section}
    known |= {"POSTGRES_PASSWORD", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", *ray_settings()}
    ran = set()
    for _, one in of_grove(rendered(*options)):
        names = [variable["name"] for variable in one["env"]]
        assert set(names) <= known and len(names) == len(set(names))
        if one["name"].startswith("ray-"):
            assert "$KUBERAY_GEN_RAY_START_CMD" in one["args"][0]
            ran |= {("worker",)} if "exec grove-entrypoint worker" in one["args"][0] else set()
        elif one["name"] == "schema-is-current":
            assert one["args"] == ["grove", "upgrade", "--check"]
        else:
            ran.add(tuple(one["args"]))
    assert ran == roles


@pytest.mark.parametrize("options", INSTALLATIONS.values(), ids=INSTALLATIONS)
def test_services_policies_and_claims_meet_what_is_there(options):
    objects = rendered(*options)
    labels = {name: pod["metadata"]["labels"] for name, pod in pods(objects).items()}
    by_name = {(one["kind"], one["metadata"]["name"]): one for one in objects}
    for (kind, name), one in by_name.items():
        if kind == "Service":
            (met,) = [pod for pod in pods(objects).values() if meets(one["spec"]["selector"], pod)]
            ports = {port["name"] for c in met["spec"]["containers"] for port in c["ports"]}
            assert {port["targetPort"] for port in one["spec"]["ports"]} <= ports, name
        elif kind == "Ingress":
            for rule in one["spec"]["rules"]:
                service = rule["http"]["paths"][0]["backend"]["service"]
                assert ("Service", service["name"]) in by_name
    for pod in pods(objects).values():
        for volume in pod["spec"].get("volumes", []):
            if claim := volume.get("persistentVolumeClaim"):
                assert ("PersistentVolumeClaim", claim["claimName"]) in by_name
    (policy,) = (one for one in objects if one["kind"] == "NetworkPolicy")
    guarded = policy["spec"]["podSelector"]["matchExpressions"][0]["values"]
    exposed = {one["app.kubernetes.io/component"] for one in labels.values()} - set(guarded)
    assert exposed == {"web", "migrate"}
    assert {one["app.kubernetes.io/instance"] for one in labels.values()} == {"r"}


def meets(selector, pod):
    return selector.items() <= pod["metadata"]["labels"].items()


def test_web_is_probed_where_it_tells_the_truth_and_trusts_the_ingress_alone():
    (web,) = (one for _, one in of_grove(rendered(*ALL_ON)) if one["name"] == "web")
    paths = {probe: web[f"{probe}Probe"]["httpGet"]["path"] for probe in ("liveness", "readiness")}
    assert paths == {"liveness": "/healthz", "readiness": "/readyz"}
    variables = {one["name"]: one.get("value") for one in web["env"]}
    assert variables["GROVE_HTTPS"] == "1" and variables["GROVE_TRUSTED_PROXIES"] == "10.0.0.0/8"
    host = web["readinessProbe"]["httpGet"]["httpHeaders"][0]
    assert host["name"] == "Host" and host["value"] in variables["GROVE_ALLOWED_HOSTS"].split(",")


def test_versions_and_settings_of_ray_are_those_of_the_image(monkeypatch):
    monkeypatch.delenv(PATIENCE, raising=False)
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == webapp.__version__
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().split())
    (cluster,) = (o for o in rendered(*INSTALLATIONS["cluster"]) if o["kind"] == "RayCluster")
    assert cluster["spec"]["rayVersion"] == pins["ray"]
    for name, pod in pods([cluster]).items():
        (one,) = pod["spec"]["containers"]
        variables = {v["name"]: v.get("value") for v in one["env"]}
        assert ray_settings().items() <= variables.items(), name
        assert variables["RAY_AUTH_MODE"] == "token" and "RAY_AUTH_TOKEN" in variables, name
        assert one["livenessProbe"] and one["readinessProbe"], "KubeRay's need wget"
        shm = next(v for v in pod["spec"]["volumes"] if v["name"] == "shm")
        assert shm["emptyDir"]["medium"] == "Memory"
        assert "app.kubernetes.io/name" not in pod["metadata"]["labels"], "it is KubeRay's"
    head, *groups = pods([cluster]).values()
    assert head["spec"]["terminationGracePeriodSeconds"] > 120
    assert all(g["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] for g in groups)


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("web.replica=2", "replica"),
        ("hosts={}", "hosts"),
        ("secretName=", "secretName"),
        ("image.digest=sha256:abc", "digest"),
        ("s3.endpoint=minio:9000", "endpoint"),
        ("ray.groups[0].name=gpu", "groups"),
    ],
)
def test_a_wrong_value_is_named(value, named):
    done = run_helm("template", "r", str(CHART), f"--set={value}")
    assert done.returncode != 0 and named in done.stderr
