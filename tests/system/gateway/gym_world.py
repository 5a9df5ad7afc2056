"""What the tests of NeMo Gym's and Polar's APIs share: a fleet with a gateway that can be killed."""
import sys

from gateway_world import Calling, Case, Fleet, add_gateway, call, wait_until


class GatewayCase(Case):
    """One fleet for a class of tests: an engine, workers, a gateway."""
    script, options, workers, slots, extra, run_options = {}, (), 1, 4, {}, ()

    @classmethod
    def setUpClass(cls):
        cls.fleet = Fleet(workers={"init": 1, "eval": 1} if cls.run_options else cls.workers, slots=cls.slots, **cls.extra)
        if cls.run_options:
            cls.fleet.add_worker("run", "run-1", options=cls.run_options)
        cls.engine = cls.fleet.add_engine(cls.script)
        cls.gateway = add_gateway(cls.fleet, *cls.options)
        cls.fleet.__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.fleet.__exit__(*sys.exc_info())

    def ask(self, method, path, body=None, **keywords):
        return call(self.gateway.port, method, path, body, **keywords)

    def later(self, method, path, body=None, **keywords):
        return Calling(self.gateway.port, method, path, body, **keywords)

    def rollouts(self, **query):
        """Those that are at work."""
        text = "&".join(f"{name}={value}" for name, value in query.items())
        return self.ask("GET", f"/api/v1/rollouts?{text}").json["rollouts"]

    def restart_gateway(self):
        self.gateway.kill()
        self.gateway.start()

    def wait_running(self, count=1, **query):
        return wait_until(lambda: (lambda found: found if len(found) >= count else None)(
            [one for one in self.rollouts(**query) if one["stage"] == "run" and one["state"] == "leased"]), 60, f"{count} at work")
