"""Samples of machines: GPUs by NVML, disk and network by the kernel, all nodes by Ray."""

from __future__ import annotations

import time
from types import SimpleNamespace

import msgspec
import psutil
import pytest
import ray
from ray.cluster_utils import Cluster

from engine.events import EventLog, SystemSample, read_all
from engine.training.cluster_readings import ClusterReader
from engine.training.gpus import GpuReader
from engine.training.node_readings import NodeReader
from engine.training.system import SystemSampler
from tests.clusters import BARE
from tests.waiting import eventually

RECORDED = [
    {"utilization": {"gpu": 97, "memory": 54}, "power_mw": 642_318,
     "memory": {"total": 85_520_809_984, "used": 61_203_283_968, "free": 24_317_526_016}},
    {"utilization": {"gpu": 0, "memory": 0}, "power_mw": None,
     "memory": {"total": 85_520_809_984, "used": 8_388_608, "free": 85_512_421_376}},
]  # fmt: skip
"""Answers as NVML gives them of two devices, of which the second reports no power."""


class Recorded:
    """The functions of `pynvml` that are called, answered from a recording."""

    class NVMLError(Exception):
        pass

    def __init__(self, devices, has_driver=True):
        self.devices, self.has_driver = devices, has_driver

    def nvmlInit(self):
        if not self.has_driver:
            raise self.NVMLError("Driver Not Loaded")

    def nvmlDeviceGetCount(self):
        return len(self.devices)

    def nvmlDeviceGetHandleByIndex(self, index):
        return self.devices[index]

    def nvmlDeviceGetUtilizationRates(self, device):
        return SimpleNamespace(**device["utilization"])

    def nvmlDeviceGetMemoryInfo(self, device):
        return SimpleNamespace(**device["memory"])

    def nvmlDeviceGetPowerUsage(self, device):
        if device["power_mw"] is None:
            raise self.NVMLError("Not Supported")
        return device["power_mw"]


def test_gpus_are_told_by_device_and_what_one_does_not_report_is_left_out():
    found = NodeReader(gpus=GpuReader(Recorded(RECORDED))).read()
    assert {name: value for name, value in found.items() if name.startswith("gpu")} == {
        "gpu_percent:0": 97.0, "gpu_memory_mb:0": 58368.0, "gpu_memory_percent:0": 71.6,
        "gpu_power_w:0": 642.3,
        "gpu_percent:1": 0.0, "gpu_memory_mb:1": 8.0, "gpu_memory_percent:1": 0.0,
    }  # fmt: skip


def test_without_a_driver_or_a_device_there_are_no_gpus():
    assert GpuReader(Recorded(RECORDED, has_driver=False)).read() == []
    assert GpuReader(Recorded([])).read() == []
    assert isinstance(GpuReader().read(), list), "whatever this machine has"


def test_a_machine_tells_its_disk_and_network_as_rates_since_the_reading_before(tmp_path):
    moments = iter([0.0, 4.0])
    before, network = psutil.net_io_counters(), "node_network_in_mb_per_s"
    reader = NodeReader(tmp_path, GpuReader(Recorded([])), clock=lambda: next(moments))
    first = reader.read()
    assert not [name for name in first if name.endswith("per_s")]
    assert 0 < first["node_memory_percent"] <= 100 and first["node_disk_free_gb"] > 0
    second = reader.read()
    came = psutil.net_io_counters().bytes_recv - before.bytes_recv
    assert 0 <= second[network] <= came / 2**20 / 4.0 + 0.001
    assert 0 <= second["node_cpu_percent"] <= 100


def test_a_sample_says_so_of_each_node_and_is_cheap(tmp_path):
    sampler = SystemSampler(tmp_path)
    began = time.process_time()
    sample = sampler.due()
    assert time.process_time() - began < 0.5
    assert sampler.due() is None, "not yet"
    assert sample.by_node["node_cpu_percent.node0"] >= 0
    log = EventLog(tmp_path)
    log.append(sample)
    log.close()
    (event,) = read_all(tmp_path)
    assert event.typed() == sample
    old = msgspec.convert({"type": "system.sample", "cpu_percent": 1, "memory_mb": 2}, SystemSample)
    assert old.by_node == {}


@pytest.fixture
def two_nodes():
    cluster = Cluster()
    for _ in range(2):
        cluster.add_node(num_cpus=1, **BARE)
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def test_every_node_of_the_cluster_is_told_and_none_is_waited_for(two_nodes, tmp_path):
    reader = ClusterReader(tmp_path)
    began = time.monotonic()
    reader.read()
    assert time.monotonic() - began < 5, "an actor takes longer to start, and is not waited for"
    eventually(lambda: "node_cpu_percent.node1" in reader.read(), "the other node", 60)
    found = reader.read()
    assert {name.partition(".")[2] for name in found} <= {"node0", "node1"}
    assert found["node_cpu_percent.node0"] >= 0
