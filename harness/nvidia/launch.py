"""From an artifact to results, through the driver itself: for backends whose library knows of no device."""

from __future__ import annotations

from pathlib import Path

from harness.nvidia.driver import Driver, DriverError, refused
from harness.nvidia.verify import Launch
from harness.protocol.backend import Job, Unavailable, Unsupported


def run_on_driver(job: Job) -> None:
    """Load the job's artifact, launch the kernels that the case says how to launch, check their results.

    Raises
    ------
    Rejected
        At ``load``, ``launch`` or ``verify``.
    """
    assert job.artifact is not None
    if job.together and job.artifact.parts:
        raise Unsupported("files of one program are loaded when they are linked with each other: rdc = true")
    if job.artifact.format == "object":
        raise Unavailable(f"relocatable device code that was not linked cannot be loaded: {'; '.join(job.notes)}")
    image = Path(job.artifact.path).read_bytes()
    driver = Driver()
    job.enter("load")
    job.command.append("cuModuleLoadDataEx")
    try:
        module = driver.load(image)
        functions = {name: driver.function(module, name) for name in job.entries}
    except DriverError as error:
        raise refused(error, "load", job.say) from None
    if not job.launches:
        job.notes.append("loaded; the case does not say how to launch")
    for spec in job.launches:
        launch = Launch(job, spec)
        try:
            job.enter("launch")
            job.command.append(str(launch))
            memory = {
                index: driver.upload(value.tobytes())
                for index, value in enumerate(launch.values)
                if launch.arguments[index].shape is not None
            }
            arguments = [memory.get(i) or launch.c_value(i) for i in range(len(launch.values))]
            driver.launch(
                functions[launch.kernel], launch.grid, launch.block, arguments,
                shared=launch.shared, opt_in=launch.opt_in, cooperative=launch.cooperative,
            )  # fmt: skip
            results = [
                launch.np.frombuffer(driver.download(memory[i], value.nbytes), value.dtype).reshape(value.shape)
                if i in memory
                else None
                for i, value in enumerate(launch.values)
            ]
        except DriverError as error:
            raise refused(error, "launch", job.say) from None
        launch.verify(results)
