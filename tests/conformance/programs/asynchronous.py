import asyncio
import signal


async def main():
    loop = asyncio.get_running_loop()
    got = asyncio.Event()
    loop.add_signal_handler(signal.SIGUSR1, got.set)
    child = await asyncio.create_subprocess_shell("kill -USR1 $PPID; echo sent; exit 4", stdout=asyncio.subprocess.PIPE)
    print((await child.communicate())[0], child.returncode)
    await asyncio.wait_for(got.wait(), 20)
    print("the signal came")
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    print(await reader.read())
    writer.close()
    server.close()


asyncio.run(main())
