import subprocess, sys, pytest
from tests.builders import a_cast
from tests.contract.site import furnish, _configuration, _LEFT_OUT_WITH_KNOWN
from tests.webapp.stream_server import a_server
pytestmark=[pytest.mark.django_db(transaction=True)]
@pytest.fixture(scope="module")
def served(django_db_setup):
    with a_server() as served:
        yield served
IDS="ask_upload get_upload list_uploads create_upload get_search get_answer check_search_in_project list_search_members list_search_problems list_presets list_settings accept_invitation check_experiment create_experiment_of_runs get_run list_models get_node get_folded get_moments create_promotion approve_promotion create_model clone_run list_metrics create_invitation".split()
@pytest.mark.parametrize("who,phases",[("an owner","examples,coverage"),("a viewer","fuzzing")])
def test_some(served, var_directory, settings, tmp_path, who, phases):
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "guesses": (100_000, 60.0)}
    site=furnish(f"http://127.0.0.1:{served.port}", a_cast())
    config=tmp_path/"schemathesis.toml"; config.write_text(_configuration(site))
    command=[sys.executable,"-m","schemathesis.cli","--config-file",str(config),"run",f"{site.url}/api/v1/openapi.json","--phases",phases,"--no-color","--max-examples","2","--seed","3","--workers","1","--exclude-checks",_LEFT_OUT_WITH_KNOWN,"--suppress-health-check","all","--no-shrink","--continue-on-failure","--request-timeout","30","--warnings","off","--header",f"Authorization: Bearer {site.secrets[who]}"]
    for one in IDS: command+=["--include-operation-id",one]
    done=subprocess.run(command,cwd=tmp_path,capture_output=True,text=True,timeout=500)
    served.wait_until_idle()
    assert done.returncode==0, done.stdout[-12000:]+done.stderr[-2000:]
    print(done.stdout[-1500:])
