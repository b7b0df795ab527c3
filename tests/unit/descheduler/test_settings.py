"""Settings of the descheduler."""

from podyard.descheduler.settings import DeschedulerSettings


def test_what_is_set_without_effect_is_told():
    settings = DeschedulerSettings(gather_s=1.0, prometheus_timeout_s=1.0)
    assert dict(settings.unused(asks_prometheus=False)) == {
        "descheduler.gather_s": "no events start cycles: descheduler.run_on is interval",
        "descheduler.prometheus_timeout_s": "no metricsProviders of the policy has the source Prometheus",
    }


def test_what_has_an_effect_is_not_told():
    settings = DeschedulerSettings(run_on="both", gather_s=1.0, pause_s=1.0, secrets_dir="/secrets")
    assert list(settings.unused(asks_prometheus=True)) == []
    assert list(DeschedulerSettings().unused(asks_prometheus=False)) == []
